// The file that a command's option -o names. A regular file, or a file that does not exist yet, is written
// under a temporary name beside it and renamed when it is complete: a reader, a full disk or a crash meets
// the old file or the new one. A symbolic link is followed and kept. Devices, FIFOs and descriptors of this
// process (/dev/stdout) are written to directly. Thread rule: thread-compatible.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

class DescriptorBuffer;  // a std::streambuf over a file descriptor

class OutputFile {
 public:
  // Errors as those of file.h. A new file's mode is rwxr-xr-x where it is executable, else rw-r--r-- (less
  // the umask).
  static absl::StatusOr<OutputFile> Open(const std::string& path, bool executable = false);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes the partial file, unless committed

  std::ostream& stream() { return *stream_; }

  // Flushes everything to the system; nothing more can be written. ResourceExhausted when there is no
  // space.
  absl::Status Close();
  // The same, and waits until the disk has it.
  absl::Status CloseDurably();
  // Closes the file if necessary, and gives it its name.
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::string partial, std::string target, int descriptor);

  std::string path_;     // as it was named, for errors
  std::string partial_;  // next to `target_`; empty: `target_` is written in place, or the file is committed
  std::string target_;   // where links lead to
  std::unique_ptr<DescriptorBuffer> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

// Whether a path means this process's standard output: "-", "/dev/stdout", "/proc/self/fd/1".
bool IsStandardOutput(const std::string& path);

// Waits until the disk has the file's contents.
absl::Status SyncFile(const std::string& path);

}  // namespace mycc
