#include "process/confine_calls.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

using Rules = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

constexpr int kUnneeded[] = {
    // Other processes.
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise),
    SCMP_SYS(kcmp), SCMP_SYS(pidfd_getfd),
    // Mounts and namespaces.
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(move_mount),
    SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr), SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(open_by_handle_at),
    // Parts of the kernel where faults were found again and again.
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register), SCMP_SYS(keyctl), SCMP_SYS(add_key),
    SCMP_SYS(request_key), SCMP_SYS(vmsplice), SCMP_SYS(fanotify_init),
    // The host as a whole.
    SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(init_module), SCMP_SYS(finit_module),
    SCMP_SYS(delete_module), SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct),
    SCMP_SYS(quotactl), SCMP_SYS(syslog), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex), SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname)};

constexpr int kChangesOfFolders[] = {
    SCMP_SYS(creat),    SCMP_SYS(truncate), SCMP_SYS(rename),   SCMP_SYS(renameat),  SCMP_SYS(renameat2),
    SCMP_SYS(unlink),   SCMP_SYS(unlinkat), SCMP_SYS(mkdir),    SCMP_SYS(mkdirat),   SCMP_SYS(rmdir),
    SCMP_SYS(link),     SCMP_SYS(linkat),   SCMP_SYS(symlink),  SCMP_SYS(symlinkat), SCMP_SYS(mknod),
    SCMP_SYS(mknodat),  SCMP_SYS(chmod),    SCMP_SYS(fchmodat), SCMP_SYS(chown),     SCMP_SYS(lchown),
    SCMP_SYS(fchownat), SCMP_SYS(utime),    SCMP_SYS(utimes),   SCMP_SYS(utimensat), SCMP_SYS(futimesat),
    SCMP_SYS(setxattr), SCMP_SYS(lsetxattr)};

// Adds rules, and keeps the first failure.
class RuleBook {
 public:
  RuleBook() : rules_(seccomp_init(SCMP_ACT_ALLOW), seccomp_release) {
    if (rules_ == nullptr) status_ = absl::InternalError("no filter of system calls can be made");
  }

  void Refuse(int call, int error = EPERM) {
    if (status_.ok()) Keep(seccomp_rule_add(rules_.get(), SCMP_ACT_ERRNO(error), call, 0));
  }
  void RefuseWhere(int call, int error, scmp_arg_cmp where) {
    if (status_.ok()) Keep(seccomp_rule_add_array(rules_.get(), SCMP_ACT_ERRNO(error), call, 1, &where));
  }
  absl::StatusOr<CallFilter> Compile() {
    if (status_.ok()) Keep(seccomp_attr_set(rules_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
    MYCC_RETURN_IF_ERROR(status_);
    const int file = memfd_create("filter", MFD_CLOEXEC);
    Keep(file < 0 ? -errno : seccomp_export_bpf(rules_.get(), file));
    const off_t bytes = file < 0 ? 0 : lseek(file, 0, SEEK_END);
    CallFilter filter(static_cast<size_t>(bytes) / sizeof(sock_filter));
    if (status_.ok() && pread(file, filter.data(), static_cast<size_t>(bytes), 0) != bytes) Keep(-EIO);
    if (file >= 0) close(file);
    MYCC_RETURN_IF_ERROR(status_);
    return filter;
  }

 private:
  void Keep(int result) {
    if (result < 0 && status_.ok()) status_ = absl::ErrnoToStatus(-result, "making a filter of system calls");
  }

  const Rules rules_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<CallFilter> CommonFilter(bool has_device) {
  RuleBook rules;
  for (const int call : kUnneeded) rules.Refuse(call);
  // A terminal that is shared would take what is typed into it.
  rules.RefuseWhere(SCMP_SYS(ioctl), EPERM, SCMP_A1(SCMP_CMP_EQ, TIOCSTI));
  if (has_device) {
    rules.RefuseWhere(SCMP_SYS(socket), EACCES, SCMP_A0(SCMP_CMP_NE, AF_UNIX));
  } else {
    rules.Refuse(SCMP_SYS(socket), EACCES);
    rules.Refuse(SCMP_SYS(socketpair), EACCES);
    rules.Refuse(SCMP_SYS(memfd_create));
  }
  return rules.Compile();
}

absl::StatusOr<CallFilter> RequestFilter(bool only_reads) {
  RuleBook rules;
  rules.Refuse(SCMP_SYS(fork));
  rules.Refuse(SCMP_SYS(vfork));
  rules.RefuseWhere(SCMP_SYS(clone), EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  rules.Refuse(SCMP_SYS(clone3), ENOSYS);  // its flags lie in memory; glibc then calls clone
  rules.Refuse(SCMP_SYS(execve));
  rules.Refuse(SCMP_SYS(execveat));
  if (!only_reads) return rules.Compile();
  for (const int call : kChangesOfFolders) rules.Refuse(call, EROFS);
  rules.Refuse(SCMP_SYS(openat2), ENOSYS);
  for (const uint64_t flag : {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC}) {
    rules.RefuseWhere(SCMP_SYS(open), EROFS, SCMP_A1(SCMP_CMP_MASKED_EQ, flag, flag));
    rules.RefuseWhere(SCMP_SYS(openat), EROFS, SCMP_A2(SCMP_CMP_MASKED_EQ, flag, flag));
  }
  return rules.Compile();
}

absl::Status Install(const CallFilter& filter) {
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              const_cast<sock_filter*>(filter.data())};
  // Before Linux 5.16 a filter turned mitigations on that make code slow, which would be measured.
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "filtering system calls");
}

}  // namespace mycc
