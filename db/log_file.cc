#include "db/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "db/schema.h"

namespace mycc {
namespace {

// SQLite's file header: where the fields that identify a file stand.
constexpr int kHeaderBytes = 100;
constexpr char kMagic[] = "SQLite format 3";  // with its terminating zero
constexpr int kReadVersionOffset = 19;        // 2: WAL mode
constexpr int kApplicationIdOffset = 68;
// For the one connection that writes. Its cache holds the pages that a group of changes touches in a log of
// millions of records, so that each is written once a group. Pages go back into the main file when the -wal
// file has this many, about 32 MB.
constexpr char kTune[] =
    "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8000; PRAGMA temp_store = MEMORY";

enum class FileKind { kMissing, kEmpty, kFile };

bool FileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool NonEmptyFileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && info.st_size > 0;
}

absl::StatusOr<FileKind> KindOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return FileKind::kMissing;
    return absl::PermissionDeniedError(absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory; expected a tuning log"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file; expected a tuning log"));
  }
  return info.st_size == 0 ? FileKind::kEmpty : FileKind::kFile;
}

absl::Status NotALog(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is ", what, "; expected a tuning log of mycc-tune"));
}

// An empty file, made here because SQLite does not say why it cannot make one.
absl::Status MakeEmpty(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor >= 0) {
    close(descriptor);
    return absl::OkStatus();
  }
  const auto code = errno == EACCES || errno == EPERM || errno == EROFS ? absl::StatusCode::kPermissionDenied
                    : errno == ENOSPC || errno == EDQUOT                ? absl::StatusCode::kResourceExhausted
                                                         : absl::StatusCode::kFailedPrecondition;
  return absl::Status(code, absl::StrCat(path, ": cannot be made: ", std::strerror(errno)));
}

int64_t BigEndian32(const std::string& bytes, size_t offset) {
  int64_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

// Judges the file by its first bytes, before SQLite touches it. A process that makes a log writes its first
// page first.
absl::Status CheckHeader(const std::string& path, const std::string& header) {
  if (header.size() < kHeaderBytes || header.compare(0, sizeof(kMagic), kMagic, sizeof(kMagic)) != 0) {
    return NotALog(path, "not a SQLite file");
  }
  if (BigEndian32(header, kApplicationIdOffset) != kApplicationId)
    return NotALog(path, "another program's SQLite file");
  return absl::OkStatus();
}

absl::Status CheckVersion(const std::string& path, int64_t version) {
  if (version <= SchemaVersion()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is a log of version ", version,
                   ", written by a newer mycc-tune; this one reads versions up to ", SchemaVersion()));
}

absl::Status Damaged(const std::string& path, const std::string& what) {
  const std::string line = absl::StrReplaceAll(what, {{"*** in database main ***\n", ""}, {"\n", "; "}});
  return absl::DataLossError(absl::StrCat(path, ": is damaged (", line, "); restore it from a backup"));
}

// SQLite's words for damage, with what to do about it.
absl::Status ExplainDamage(const std::string& path, const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return Damaged(path, absl::StrReplaceAll(std::string(status.message()),
                                           {{path + ": ", ""}, {"; restore it from a backup", ""}}));
}

absl::Status ExplainReadFailure(const std::string& path, const absl::Status& status) {
  if (absl::IsDataLoss(status)) return ExplainDamage(path, status);
  if (NonEmptyFileExists(path + "-journal")) {
    return absl::UnavailableError(absl::StrCat(
        path,
        ": a write to it was interrupted, and only a writer can undo it; run mycc-tune log gc on it once"));
  }
  if (!NonEmptyFileExists(path + "-wal")) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(path,
                   ": was not closed cleanly, and reading its -wal file needs a directory that can be "
                   "written; close its server, or run mycc-tune log gc on it where it was written"));
}

// Opens to read. A log in WAL mode without its -wal file has no writer, and is read without making one. One
// with an empty -wal file may have a writer, unless the directory cannot be written.
absl::StatusOr<std::unique_ptr<Database>> OpenToRead(const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path, Database::Access::kRead));
  MYCC_ASSIGN_OR_RETURN(const std::string header, database->ReadHeader(kHeaderBytes));
  MYCC_RETURN_IF_ERROR(CheckHeader(path, header));
  const std::string wal = path + "-wal";
  const bool in_wal_mode = header[kReadVersionOffset] == 2;
  absl::StatusOr<int64_t> version = absl::UnavailableError("not read yet");
  if (!in_wal_mode || FileExists(wal)) version = ReadVersion(database.get());
  if (!version.ok() && in_wal_mode && !NonEmptyFileExists(wal)) {
    MYCC_ASSIGN_OR_RETURN(database, Database::Open(path, Database::Access::kReadImmutable));
    version = ReadVersion(database.get());
  }
  if (!version.ok()) return ExplainReadFailure(path, version.status());
  MYCC_RETURN_IF_ERROR(CheckVersion(path, *version));
  return database;
}

// Reads the whole file's structure: what will be written to is known to be sound.
absl::Status CheckSound(Database* database) {
  absl::StatusOr<std::string> verdict = database->ReadText("PRAGMA quick_check(1)");
  if (!verdict.ok()) return ExplainDamage(database->path(), verdict.status());
  return *verdict == "ok" ? absl::OkStatus() : Damaged(database->path(), *verdict);
}

// Its server was killed. It had found the whole file sound, and the end of a process damages no file, as the
// end of the machine may: so a server that is started again need not read all of a large log first. Later
// damage is found when the damaged rows are read.
bool WasServedUntilKilled(const std::string& path) {
  return FileExists(path + "-wal") && FileLock::IsOfThisBoot(path);
}

// False when only a writer can tell: an interrupted write has to be undone first.
absl::StatusOr<bool> CheckBeforeWriting(const std::string& path, OpenMode mode) {
  absl::StatusOr<std::unique_ptr<Database>> reader = OpenToRead(path);
  if (absl::IsUnavailable(reader.status())) return false;
  MYCC_RETURN_IF_ERROR(reader.status());
  if (mode == OpenMode::kServe && WasServedUntilKilled(path)) return true;
  MYCC_RETURN_IF_ERROR(CheckSound(reader->get()));
  return true;
}

absl::Status PrepareForWriting(Database* database) {
  MYCC_RETURN_IF_ERROR(database->Execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL"));
  MYCC_RETURN_IF_ERROR(database->Execute(kTune));
  MYCC_ASSIGN_OR_RETURN(const int64_t version, ReadVersion(database));
  MYCC_RETURN_IF_ERROR(CheckVersion(database->path(), version));
  if (version == 0) {
    MYCC_ASSIGN_OR_RETURN(const int64_t tables, database->ReadInt("SELECT count(*) FROM sqlite_schema"));
    if (tables != 0) return NotALog(database->path(), "another program's SQLite file");
  }
  // Before WAL mode, so that a new log's identity is in the file itself and not in its -wal.
  if (version < SchemaVersion()) MYCC_RETURN_IF_ERROR(Migrate(database, Migrations()));
  MYCC_ASSIGN_OR_RETURN(const std::string mode, database->ReadText("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(absl::StrCat(
        database->path(), ": its file system does not support a write-ahead log; use a local disk"));
  }
  // The first read makes the -wal file, by which readers know that the log has a writer.
  return database->ReadInt("SELECT count(*) FROM sqlite_schema").status();
}

}  // namespace

absl::StatusOr<LogFile> LogFile::Open(const std::string& path, OpenMode mode) {
  MYCC_ASSIGN_OR_RETURN(const FileKind kind, KindOf(path));
  const bool may_create = mode == OpenMode::kCreate || mode == OpenMode::kServe;
  if (kind == FileKind::kMissing && !may_create) {
    return absl::NotFoundError(absl::StrCat(path, ": no such tuning log"));
  }
  if (kind == FileKind::kEmpty && !may_create) return NotALog(path, "an empty file");

  if (mode == OpenMode::kRead) {
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, OpenToRead(path));
    MYCC_ASSIGN_OR_RETURN(const int64_t version, ReadVersion(database.get()));
    if (version < SchemaVersion()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": is a log of the older version ", version,
                       "; run mycc-tune log gc on it once to bring it to version ", SchemaVersion()));
    }
    return LogFile(std::nullopt, std::move(database), /*was_made=*/false);
  }

  bool is_sound = true;
  if (kind == FileKind::kFile) {
    MYCC_ASSIGN_OR_RETURN(is_sound, CheckBeforeWriting(path, mode));
  }
  std::optional<FileLock> lock;
  if (mode == OpenMode::kServe) {
    MYCC_ASSIGN_OR_RETURN(FileLock acquired, FileLock::Acquire(path));
    lock.emplace(std::move(acquired));
  }
  if (kind == FileKind::kMissing) MYCC_RETURN_IF_ERROR(MakeEmpty(path));
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                        Database::Open(path, Database::Access::kReadWrite));
  if (!is_sound) MYCC_RETURN_IF_ERROR(CheckSound(database.get()));
  const absl::Status prepared = PrepareForWriting(database.get());
  if (!prepared.ok()) {
    database.reset();
    if (kind == FileKind::kMissing && !NonEmptyFileExists(path))
      unlink(path.c_str());  // nothing was there; leave nothing
    return ExplainDamage(path, prepared);
  }
  return LogFile(std::move(lock), std::move(database), kind == FileKind::kMissing);
}

LogFile::FileId LogFile::IdOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {};
  return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
}

absl::Status LogFile::CheckInPlace() const {
  const std::string& path = database_->path();
  const FileId now = IdOf(path);
  if (now == id_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, now == FileId() ? ": was deleted or moved" : ": was replaced by another file",
                   " while it was open; expected the log to stay where it is, start again with it"));
}

absl::Status LogFile::Close() {
  if (database_ == nullptr) return absl::OkStatus();
  if (!database_->read_only()) {
    // Leaving WAL mode fails while others have the log open; then the file at least holds everything.
    database_->Execute("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
    database_->Execute("PRAGMA journal_mode = DELETE").IgnoreError();
  }
  const absl::Status closed = database_->Close();
  database_.reset();
  lock_.reset();
  return closed;
}

void LogFile::Abandon() {
  if (database_ == nullptr) return;
  const std::string path = database_->path();
  const absl::StatusOr<int64_t> is_unused =
      database_->ReadInt("SELECT NOT EXISTS (SELECT 1 FROM records) AND NOT EXISTS (SELECT 1 FROM jobs)");
  const bool is_ours = was_made_ && is_unused.ok() && *is_unused != 0 && CheckInPlace().ok();
  if (Close().ok() && is_ours && !FileExists(path + "-wal")) unlink(path.c_str());
}

LogFile::~LogFile() { Close().IgnoreError(); }

}  // namespace mycc
