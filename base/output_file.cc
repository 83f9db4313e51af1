#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <streambuf>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/os_error.h"
#include "base/status.h"

namespace mycc {

// Keeps the first error: a stream's own state does not say what it was.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor), bytes_(size_t{1} << 16) {
    setp(bytes_.data(), bytes_.data() + bytes_.size());
  }
  ~DescriptorBuffer() override { CloseDescriptor(); }

  int error() const { return error_; }

  // True when everything that was written has left, here and in Close.
  bool Sync() {
    if (sync() == 0 && fsync(descriptor_) != 0) error_ = errno;
    return error_ == 0;
  }
  bool Close() {
    sync();
    if (!CloseDescriptor() && error_ == 0) error_ = errno;
    return error_ == 0;
  }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
    return c;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (size < epptr() - pptr()) return std::streambuf::xsputn(text, size);
    return sync() == 0 && WriteAll({text, static_cast<size_t>(size)}) ? size : 0;
  }
  int sync() override {
    const std::string_view waiting(pbase(), static_cast<size_t>(pptr() - pbase()));
    const bool written = WriteAll(waiting);
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return written ? 0 : -1;
  }

 private:
  bool WriteAll(std::string_view bytes) {
    while (error_ == 0 && !bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        error_ = errno;
      } else {
        bytes.remove_prefix(static_cast<size_t>(written));
      }
    }
    return error_ == 0;
  }
  bool CloseDescriptor() {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || close(descriptor) == 0;
  }

  int descriptor_;
  int error_ = 0;
  std::vector<char> bytes_;
};

namespace {

constexpr int kMostLinks = 40;

// The temporary name beside a file. It differs for two threads and for two processes that write one file.
std::string PartialName(const std::string& target) {
  static std::atomic<uint64_t> files = 0;
  return absl::StrCat(target, ".", getpid(), ".", ++files, ".part");
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// The number of the descriptor that a path in /proc/self/fd or /dev/fd names.
std::optional<int> DescriptorOf(const std::string& path) {
  char folder[PATH_MAX];
  int descriptor = 0;
  if (realpath(FolderOf(path).c_str(), folder) == nullptr ||
      absl::string_view(folder) != absl::StrCat("/proc/", getpid(), "/fd") ||
      !absl::SimpleAtoi(path.substr(path.rfind('/') + 1), &descriptor)) {
    return std::nullopt;
  }
  return descriptor;
}

// The end of a chain of symbolic links: a path that is no link, or is not there, or an open descriptor, which
// looks like a link to the file that was opened.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  std::string at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    char target[PATH_MAX];
    const ssize_t size = readlink(at.c_str(), target, sizeof(target));
    if (size < 0 || DescriptorOf(at)) return at;
    const std::string next(target, static_cast<size_t>(size));
    at = absl::StartsWith(next, "/") ? next : absl::StrCat(FolderOf(at), "/", next);
  }
  errno = ELOOP;
  return OsError("write", path);
}

}  // namespace

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path, bool executable) {
  MYCC_ASSIGN_OR_RETURN(std::string target, FollowLinks(path));
  struct stat info;
  const bool exists = stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return OsError("write", path);
  }
  const std::optional<int> own = DescriptorOf(target);
  const bool stands = own || (exists && !S_ISREG(info.st_mode));
  std::string partial = stands ? "" : PartialName(target);
  const int descriptor =
      own      ? fcntl(*own, F_DUPFD_CLOEXEC, 0)
      : stands ? open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)
               : open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, executable ? 0777 : 0666);
  if (descriptor < 0) return OsError("write", path);
  return OutputFile(path, std::move(partial), std::move(target), descriptor);
}

OutputFile::OutputFile(std::string path, std::string partial, std::string target, int descriptor)
    : path_(std::move(path)),
      partial_(std::move(partial)),
      target_(std::move(target)),
      buffer_(std::make_unique<DescriptorBuffer>(descriptor)),
      stream_(std::make_unique<std::ostream>(buffer_.get())) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::exchange(other.partial_, "")),
      target_(std::move(other.target_)),
      buffer_(std::move(other.buffer_)),
      stream_(std::move(other.stream_)) {}

OutputFile::~OutputFile() {
  if (!partial_.empty()) unlink(partial_.c_str());
}

absl::Status OutputFile::Close() {
  if (buffer_->Close()) return absl::OkStatus();
  errno = buffer_->error();
  return OsError("write", path_);
}

absl::Status OutputFile::CloseDurably() {
  // A FIFO or a device has nothing to wait for, and no fsync.
  if (!partial_.empty()) buffer_->Sync();
  return Close();
}

absl::Status OutputFile::Commit() {
  MYCC_RETURN_IF_ERROR(Close());
  const std::string partial = std::exchange(partial_, "");
  if (partial.empty() || rename(partial.c_str(), target_.c_str()) == 0) return absl::OkStatus();
  const absl::Status failed = OsError("write", path_);
  unlink(partial.c_str());
  return failed;
}

bool IsStandardOutput(const std::string& path) {
  if (path == "-") return true;
  const absl::StatusOr<std::string> target = FollowLinks(path);
  return target.ok() && DescriptorOf(*target) == STDOUT_FILENO;
}

absl::Status SyncFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  errno = error;
  return synced ? absl::OkStatus() : OsError("write", path);
}

}  // namespace mycc
