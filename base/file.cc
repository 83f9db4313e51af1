#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/os_error.h"
#include "base/output_file.h"
#include "base/status.h"

namespace mycc {
namespace {

// Closes on scope exit.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status TooLarge(const std::string& path, int64_t most_bytes) {
  const std::string most =
      most_bytes < (1 << 20) ? absl::StrCat(most_bytes, " bytes") : absl::StrCat(most_bytes >> 20, " MiB");
  return absl::InvalidArgumentError(
      absl::StrCat("`", path, "` is too large; expected at most ", most, " of such a file"));
}

// Up to `bytes` of what can be read; `likely` as many.
absl::StatusOr<std::string> ReadUpTo(int fd, const std::string& path, int64_t bytes, int64_t likely) {
  constexpr int64_t kPiece = 1 << 16;
  std::string read_bytes;
  read_bytes.reserve(static_cast<size_t>(likely));
  while (static_cast<int64_t>(read_bytes.size()) < bytes) {
    const size_t before = read_bytes.size();
    const auto piece = static_cast<size_t>(std::min<int64_t>(kPiece, bytes - static_cast<int64_t>(before)));
    read_bytes.resize(before + piece);
    const ssize_t got = read(fd, read_bytes.data() + before, piece);
    read_bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) return OsError("read", path);
    if (got == 0) break;
  }
  return read_bytes;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return OsError("open", path);
  struct stat info;
  const bool is_regular = fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  if (is_regular && info.st_size > most_bytes) return TooLarge(path, most_bytes);
  const int64_t one_more = most_bytes == std::numeric_limits<int64_t>::max() ? most_bytes : most_bytes + 1;
  absl::StatusOr<std::string> bytes = ReadUpTo(file.get(), path, one_more, is_regular ? info.st_size : 0);
  if (bytes.ok() && static_cast<int64_t>(bytes->size()) > most_bytes) return TooLarge(path, most_bytes);
  return bytes;
}

absl::StatusOr<std::string> ReadBeginning(const std::string& path, int64_t bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return OsError("open", path);
  return ReadUpTo(file.get(), path, bytes, bytes);
}

absl::StatusOr<std::string> ReadText(const std::string& path, int64_t most_bytes) {
  MYCC_ASSIGN_OR_RETURN(std::string text, ReadFile(path, most_bytes));
  DropByteOrderMark(&text);
  return text;
}

void DropByteOrderMark(std::string* text) {
  constexpr char kMark[] = "\xef\xbb\xbf";
  if (absl::StartsWith(*text, kMark)) text->erase(0, sizeof(kMark) - 1);
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes, bool executable) {
  MYCC_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, executable));
  file.stream() << bytes;
  return file.Commit();
}

absl::Status WriteFilesAtomically(const std::vector<FileContents>& files) {
  std::vector<OutputFile> written;
  for (const FileContents& contents : files) {
    MYCC_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(contents.path, contents.executable));
    file.stream() << contents.bytes;
    MYCC_RETURN_IF_ERROR(file.Close());
    written.push_back(std::move(file));
  }
  for (OutputFile& file : written) MYCC_RETURN_IF_ERROR(file.Commit());
  return absl::OkStatus();
}

}  // namespace mycc
