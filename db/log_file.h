// Opens and closes the file of a tuning log. Files that are not logs, are damaged, or are newer than this
// build are refused with one line and never modified.
//
// While a writer has the log open, the file is in SQLite's WAL mode, with LOG-wal and LOG-shm beside it. A
// clean close turns it back into one self-contained file in rollback mode, which can be read anywhere, also
// in a directory that cannot be written. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/database.h"
#include "db/file_lock.h"

namespace mycc {

enum class OpenMode {
  kRead,    // the log must exist and have this build's version
  kWrite,   // the log must exist; it is migrated if it is older
  kCreate,  // as kWrite, but a missing or empty file becomes an empty log
  kServe,   // as kCreate, and no other process may serve the log meanwhile
};

class LogFile {
 public:
  // Codes: NotFound (missing), InvalidArgument (not a log), DataLoss (damaged), FailedPrecondition (newer
  // version, older version and read-only, served by another process), PermissionDenied, ResourceExhausted (no
  // space), Unavailable (busy).
  static absl::StatusOr<LogFile> Open(const std::string& path, OpenMode mode);
  LogFile(LogFile&&) = default;
  LogFile& operator=(LogFile&&) = delete;
  ~LogFile();

  Database* database() const { return database_.get(); }

  // FailedPrecondition when another file, or none, stands at the path by now.
  absl::Status CheckInPlace() const;

  absl::Status Close();
  // Closes, and removes a file that Open has made and that holds neither records nor jobs.
  void Abandon();

 private:
  // The system's name of a file, whatever its path.
  struct FileId {
    uint64_t device = 0, inode = 0;
    bool operator==(const FileId&) const = default;
  };
  static FileId IdOf(const std::string& path);

  LogFile(std::optional<FileLock> lock, std::unique_ptr<Database> database, bool was_made)
      : lock_(std::move(lock)),
        database_(std::move(database)),
        id_(IdOf(database_->path())),
        was_made_(was_made) {}

  std::optional<FileLock> lock_;  // outlives the connection
  std::unique_ptr<Database> database_;
  FileId id_;      // when it was opened
  bool was_made_;  // by Open
};

}  // namespace mycc
