#include "server/access_files.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "proto/certificates.h"
#include "proto/channel.h"

namespace mycc {
namespace {

constexpr auto kLookSeconds = std::chrono::seconds(1);
constexpr int64_t kMostAccessBytes = int64_t{16} << 20;
// The one principal of a token that all share; nobody sees the name.
constexpr char kSharedName[] = "everybody";

}  // namespace

absl::StatusOr<AccessList> AccessFiles::ReadCallers(const AccessFileNames& names) {
  if (!names.access_file.empty()) {
    MYCC_ASSIGN_OR_RETURN(const std::string text, ReadText(names.access_file, kMostAccessBytes));
    return AccessList::Parse(text, names.access_file);
  }
  AccessList list;
  if (names.token_file.empty()) return list;
  MYCC_ASSIGN_OR_RETURN(const std::string token, ReadToken(names.token_file));
  Principal everybody;
  everybody.name = kSharedName;
  everybody.roles = {Role::kAdmin};
  everybody.tokens = {{Sha256Hex(token)}};
  MYCC_RETURN_IF_ERROR(list.Add(std::move(everybody)));
  return list;
}

absl::StatusOr<TlsTexts> AccessFiles::ReadTls(const AccessFileNames& names) {
  TlsTexts tls;
  if (names.tls_cert_file.empty()) return tls;
  MYCC_ASSIGN_OR_RETURN(tls.certificates, ReadFile(names.tls_cert_file, kMostSecretBytes));
  MYCC_ASSIGN_OR_RETURN(tls.key, ReadFile(names.tls_key_file, kMostSecretBytes));
  MYCC_RETURN_IF_ERROR(CheckCertificates(tls.certificates, names.tls_cert_file));
  MYCC_RETURN_IF_ERROR(CheckKey(tls.key, names.tls_key_file, tls.certificates));
  if (names.tls_client_ca_file.empty()) return tls;
  MYCC_ASSIGN_OR_RETURN(tls.client_ca, ReadFile(names.tls_client_ca_file, kMostSecretBytes));
  MYCC_RETURN_IF_ERROR(CheckCertificates(tls.client_ca, names.tls_client_ca_file));
  return tls;
}

absl::Status AccessFiles::Check(const AccessFileNames& names) {
  if (names.tls_cert_file.empty() != names.tls_key_file.empty())
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together; expected both or neither");
  if (!names.access_file.empty() && !names.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--access names the callers with their tokens, and --token-file one token of all; expected one of "
        "the two");
  }
  if (!names.tls_client_ca_file.empty() && (names.tls_cert_file.empty() || names.access_file.empty())) {
    return absl::InvalidArgumentError(
        "--tls-client-ca asks callers for certificates; expected --tls-cert and --tls-key, and --access, "
        "which says "
        "what each caller may do");
  }
  MYCC_RETURN_IF_ERROR(ReadTls(names).status());
  return ReadCallers(names).status();
}

absl::StatusOr<std::unique_ptr<AccessFiles>> AccessFiles::Open(AccessFileNames names,
                                                               std::function<void(const std::string&)> log) {
  MYCC_RETURN_IF_ERROR(Check(names));
  std::unique_ptr<AccessFiles> files(new AccessFiles(std::move(names), std::move(log)));
  MYCC_ASSIGN_OR_RETURN(AccessList callers, ReadCallers(files->names_));
  MYCC_ASSIGN_OR_RETURN(TlsTexts tls, ReadTls(files->names_));
  {
    const MutexLock lock(&files->mutex_);
    files->printed_ = callers.Print();
    files->callers_ = std::make_shared<const AccessList>(std::move(callers));
    files->tls_ = std::move(tls);
  }
  return files;
}

AccessFiles::~AccessFiles() { StopWatching(); }

void AccessFiles::Watch(std::function<void()> changed) {
  watcher_ = std::thread([this, changed = std::move(changed)] {
    while (true) {
      {
        const MutexLock lock(&mutex_);
        const auto next = std::chrono::steady_clock::now() + kLookSeconds;
        while (!stopping_ && stopped_.WaitUntil(&mutex_, next)) {
        }
        if (stopping_) return;
      }
      if (Refresh()) changed();
    }
  });
}

void AccessFiles::StopWatching() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    stopped_.NotifyAll();
  }
  if (watcher_.joinable()) watcher_.join();
}

void AccessFiles::Say(const std::string& line) const {
  if (log_) log_(line);
}

void AccessFiles::Tell(const std::string& kind, const absl::Status& trouble) {
  std::string& told = told_[kind];
  const std::string now = trouble.ok() ? "" : std::string(trouble.message());
  if (now != std::exchange(told, now) && !now.empty())
    Say(absl::StrCat("the ", kind, " stay as they were: ", now));
}

bool AccessFiles::Refresh() {
  const MutexLock one(&refreshing_);
  bool is_other = false;
  absl::StatusOr<AccessList> callers = ReadCallers(names_);
  Tell("callers", callers.status());
  if (callers.ok()) {
    std::string printed = callers->Print();
    const MutexLock lock(&mutex_);
    if (printed != printed_) {
      printed_ = std::move(printed);
      callers_ = std::make_shared<const AccessList>(*std::move(callers));
      ++version_;
      is_other = true;
    }
  }
  if (is_other) Say(absl::StrCat("read ", names_.access_file, names_.token_file, " again"));
  absl::StatusOr<TlsTexts> tls = ReadTls(names_);
  Tell("certificates", tls.status());
  if (!tls.ok()) return is_other;
  {
    const MutexLock lock(&mutex_);
    if (*tls == tls_) return is_other;
    tls_ = *std::move(tls);
    ++tls_version_;
    ++version_;
  }
  Say(absl::StrCat("read ", names_.tls_cert_file, " again, with its key",
                   names_.tls_client_ca_file.empty() ? "" : " and the authority of callers"));
  return true;
}

absl::StatusOr<Caller> AccessFiles::CallerOf(const Shown& shown, int64_t now_unix_seconds) const {
  std::shared_ptr<const AccessList> callers;
  {
    const MutexLock lock(&mutex_);
    callers = callers_;
  }
  absl::StatusOr<Caller> caller = callers->CallerOf(shown, now_unix_seconds);
  if (caller.ok() && names_.access_file.empty()) caller->name.clear();  // many share it
  return caller;
}

bool AccessFiles::NamesUsers() const {
  const MutexLock lock(&mutex_);
  return callers_->NamesUsers();
}

TlsTexts AccessFiles::tls() const {
  const MutexLock lock(&mutex_);
  return tls_;
}

uint64_t AccessFiles::version() const {
  const MutexLock lock(&mutex_);
  return version_;
}

uint64_t AccessFiles::tls_version() const {
  const MutexLock lock(&mutex_);
  return tls_version_;
}

}  // namespace mycc
