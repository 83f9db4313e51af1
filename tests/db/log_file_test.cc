// The files that may be opened as tuning logs, and that others are never touched.
#include "db/log_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "db/schema.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr OpenMode kAllModes[] = {OpenMode::kRead, OpenMode::kWrite, OpenMode::kCreate, OpenMode::kServe};

// Acts as nobody, whom permissions bind also where the tests run as root.
class AsNobody {
 public:
  AsNobody() {
    if (geteuid() == 0) active_ = seteuid(65534) == 0;
  }
  ~AsNobody() {
    if (active_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }

 private:
  bool active_ = false;
};

void RunSqlite(const std::string& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(connection);
}

// Refused in every mode with one line that names the file, and nothing in its folder changes.
void ExpectRefused(const TempDir& directory, const std::string& path, absl::StatusCode code,
                   const std::string& words,
                   const std::vector<OpenMode>& modes = {std::begin(kAllModes), std::end(kAllModes)}) {
  const auto before = Snapshot(directory.path());
  for (OpenMode mode : modes) {
    const absl::Status status = LogFile::Open(path, mode).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_TRUE(absl::StartsWith(status.message(), path)) << status;
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
    EXPECT_EQ(Snapshot(directory.path()), before);
  }
}

TEST(LogFileTest, AMissingLogIsMadeOnlyWhereThatWasAskedFor) {
  TempDir directory;
  const std::string path = directory / "new.db";
  for (OpenMode mode : {OpenMode::kRead, OpenMode::kWrite}) {
    EXPECT_EQ(LogFile::Open(path, mode).status().code(), absl::StatusCode::kNotFound);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kCreate).ok());
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kRead).ok());
}

TEST(LogFileTest, AnEmptyFileBecomesALogOnlyWhereThatWasAskedFor) {
  TempDir directory;
  const std::string path = directory / "empty.db";
  WriteBytes(path, "");
  ExpectRefused(directory, path, absl::StatusCode::kInvalidArgument, "is an empty file",
                {OpenMode::kRead, OpenMode::kWrite});
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kCreate).ok());
}

TEST(LogFileTest, ACleanCloseLeavesOneFileInRollbackMode) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 20);
  const auto files = Snapshot(directory.path());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files.at("tuning.db")[18], 1);  // not WAL: readers need no other file
  EXPECT_EQ(files.at("tuning.db")[19], 1);
}

TEST(LogFileTest, AServedLogHasOneServer) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  absl::StatusOr<LogFile> server = LogFile::Open(path, OpenMode::kServe);
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::Status second = LogFile::Open(path, OpenMode::kServe).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat("is served by process ", getpid())));
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kWrite).ok());  // others may still write, and read
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kRead).ok());
  ASSERT_TRUE(server->Close().ok());
  EXPECT_EQ(Snapshot(directory.path()).size(), 1u);
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kServe).ok());
}

TEST(LogFileTest, RefusesADirectory) {
  TempDir directory;
  std::filesystem::create_directory(directory / "folder");
  ExpectRefused(directory, directory / "folder", absl::StatusCode::kInvalidArgument, "is a directory");
}

TEST(LogFileTest, RefusesWhatIsNoRegularFile) {
  TempDir directory;
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  ExpectRefused(directory, directory / "pipe", absl::StatusCode::kInvalidArgument, "is not a regular file");
}

TEST(LogFileTest, RefusesTextAndShortFiles) {
  TempDir directory;
  const std::string path = directory / "text.db";
  for (const std::string& bytes :
       {std::string("x"), std::string("{\"mycc_tuning_log\":1}\n"), std::string(5000, 'a'),
        std::string("SQLite format 3\0", 16), std::string(200, '\0')}) {
    WriteBytes(path, bytes);
    ExpectRefused(directory, path, absl::StatusCode::kInvalidArgument,
                  "is not a SQLite file; expected a tuning log");
  }
}

TEST(LogFileTest, RefusesAnotherProgramsSqliteFile) {
  TempDir directory;
  for (const char* mode : {"DELETE", "WAL"}) {
    const std::string path = directory / absl::StrCat(mode, ".db");
    RunSqlite(path, absl::StrCat("PRAGMA journal_mode=", mode,
                                 "; CREATE TABLE records (id INTEGER); PRAGMA user_version=1"));
    ExpectRefused(directory, path, absl::StatusCode::kInvalidArgument, "is another program's SQLite file");
  }
}

TEST(LogFileTest, LeavesTheWriteAheadLogOfAnotherProgramAlone) {
  TempDir directory;
  const std::string path = directory / "foreign.db";
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection, "PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  ASSERT_GT(Snapshot(directory.path()).at("foreign.db-wal").size(), 0u);
  ExpectRefused(directory, path, absl::StatusCode::kInvalidArgument, "is another program's SQLite file");
  sqlite3_close(connection);
}

TEST(LogFileTest, RefusesALogOfANewerVersion) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 3);
  RunSqlite(path, absl::StrCat("PRAGMA user_version=", SchemaVersion() + 1));
  ExpectRefused(directory, path, absl::StatusCode::kFailedPrecondition, "written by a newer mycc-tune");
}

TEST(LogFileTest, RefusesATruncatedLog) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 200);
  const std::string bytes = ReadBytes(path);
  for (size_t size : {bytes.size() / 2, bytes.size() - 4096, size_t{4096}, size_t{5000}}) {
    WriteBytes(path, bytes.substr(0, size));
    ExpectRefused(directory, path, absl::StatusCode::kDataLoss, "is damaged",
                  {OpenMode::kWrite, OpenMode::kCreate, OpenMode::kServe});
    const absl::Status status = LogFile::Open(path, OpenMode::kRead).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    const std::string advice = "restore it from a backup", words(status.message());
    EXPECT_EQ(words.find(advice), words.rfind(advice)) << words;
  }
}

TEST(LogFileTest, AServersLogNeedsItsFolder) {
  TempDir directory;
  const absl::Status status =
      LogFile::Open(absl::StrCat(directory.path(), "/none/x.db"), OpenMode::kServe).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot lock the log: its folder does not exist"));
}

TEST(LogFileTest, WritersRefuseALogWithADamagedPage) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 200);
  const std::string bytes = ReadBytes(path);
  // Overwrites the beginning, where a page keeps its structure, of every page in turn; the first page keeps
  // the file's header.
  for (size_t page = 1; page * 4096 < bytes.size(); ++page) {
    std::string damaged = bytes;
    for (size_t i = 0; i < 64; ++i) damaged[page * 4096 + i] = static_cast<char>(0xa5 ^ i);
    WriteBytes(path, damaged);
    ExpectRefused(directory, path, absl::StatusCode::kDataLoss, "is damaged",
                  {OpenMode::kWrite, OpenMode::kServe});
  }
}

// Reading all of a large log takes seconds, which a server that was killed need not take again.
TEST(LogFileTest, AKilledServersLogIsReadWholeOnlyAfterAStartOfTheMachine) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 200);
  TempDir copies;
  const std::string copy = copies / "tuning.db";
  {
    auto log = TuningLog::Open(path, OpenMode::kServe);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append({MakeRecord({.index = 1000})}).ok());
    for (const char* end : {"", "-wal", "-lock"}) WriteBytes(copy + end, ReadBytes(path + end));
  }
  std::string damaged = ReadBytes(copy);
  const size_t page = damaged.size() / 4096 / 2;
  for (size_t i = 0; i < 64; ++i) damaged[page * 4096 + i] = static_cast<char>(0xa5 ^ i);
  WriteBytes(copy, damaged);
  const std::string lock = ReadBytes(copy + "-lock");

  WriteBytes(copy + "-lock", absl::StrCat(getpid(), " 01234567-89ab-cdef-0123-456789abcdef\n"));
  const absl::Status after_a_start = LogFile::Open(copy, OpenMode::kServe).status();
  EXPECT_EQ(after_a_start.code(), absl::StatusCode::kDataLoss) << after_a_start;
  WriteBytes(copy + "-lock", lock);
  const absl::Status by_others = LogFile::Open(copy, OpenMode::kWrite).status();
  EXPECT_EQ(by_others.code(), absl::StatusCode::kDataLoss) << by_others;
  const absl::Status again = LogFile::Open(copy, OpenMode::kServe).status();
  EXPECT_TRUE(again.ok()) << again;
}

TEST(LogFileTest, RefusesWithoutPermission) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 3);
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  {
    AsNobody nobody;
    const absl::Status status = LogFile::Open(path, OpenMode::kRead).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot open: Permission denied"));
  }
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  {
    AsNobody nobody;
    EXPECT_TRUE(LogFile::Open(path, OpenMode::kRead).ok());
    EXPECT_EQ(LogFile::Open(path, OpenMode::kWrite).status().code(), absl::StatusCode::kPermissionDenied);
  }
}

TEST(LogFileTest, RefusesToMakeALogWhereNoneCanBe) {
  TempDir directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0555), 0);
  AsNobody nobody;
  for (OpenMode mode : {OpenMode::kCreate, OpenMode::kServe}) {
    const absl::Status status = LogFile::Open(directory / "new.db", mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Permission denied"));
  }
  const absl::Status status = LogFile::Open(directory / "no/such/folder.db", OpenMode::kCreate).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("No such file or directory"));
}

TEST(LogFileTest, ReadsInADirectoryThatCannotBeWritten) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 3);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(directory.path().c_str(), 0555), 0);
  AsNobody nobody;
  auto log = TuningLog::Open(path, OpenMode::kRead);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).ok());
}

TEST(LogFileTest, ReadsALogInWalModeWithoutItsSideFilesAndLeavesNone) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 3);
  RunSqlite(path, "PRAGMA journal_mode=WAL");  // as a copy of a log that a reader kept from turning back
  const auto before = Snapshot(directory.path());
  ASSERT_EQ(before.size(), 1u);
  ASSERT_EQ(before.begin()->second[19], 2);
  {
    auto log = TuningLog::Open(path, OpenMode::kRead);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_TRUE((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).ok());
  }
  EXPECT_EQ(Snapshot(directory.path()), before);
}

// A reader that was the last to go leaves the files like this.
TEST(LogFileTest, ReadsALogWithAnEmptyWriteAheadLogWhereverItStands) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 3);
  RunSqlite(path, "PRAGMA journal_mode=WAL");
  WriteBytes(path + "-wal", "");
  ASSERT_EQ(chmod(directory.path().c_str(), 0555), 0);
  AsNobody nobody;
  auto log = TuningLog::Open(path, OpenMode::kRead);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).ok());
}

TEST(LogFileTest, AReaderOfAnIdleServersLogSeesWhatIsWrittenLater) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  auto server = TuningLog::Open(path, OpenMode::kServe);
  auto reader = TuningLog::Open(path, OpenMode::kRead);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE((*server)->Append({MakeRecord({})}).ok());
  EXPECT_TRUE((*reader)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).ok());
  ASSERT_TRUE((*server)->Close().ok());
  TempDir elsewhere;  // the file alone holds everything although the reader is still there
  WriteBytes(elsewhere / "copy.db", ReadBytes(path));
  auto copy = TuningLog::Open(elsewhere / "copy.db", OpenMode::kRead);
  EXPECT_TRUE((*copy)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).ok());
}

TEST(LogFileTest, ExplainsALogThatWasNotClosedWhereItCannotBeRead) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  TempDir copies;
  {
    auto log = TuningLog::Open(path, OpenMode::kCreate);
    ASSERT_TRUE(log.ok());
    ASSERT_TRUE((*log)->Append({MakeRecord({})}).ok());
    // The files as kill -9 leaves them, but for the shared memory.
    WriteBytes(copies / "tuning.db", ReadBytes(path));
    WriteBytes(copies / "tuning.db-wal", ReadBytes(path + "-wal"));
  }
  ASSERT_EQ(chmod(copies.path().c_str(), 0555), 0);
  {
    AsNobody nobody;
    const absl::Status status = LogFile::Open(copies / "tuning.db", OpenMode::kRead).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("was not closed cleanly"));
  }
  ASSERT_EQ(chmod(copies.path().c_str(), 0755), 0);
  // Nothing is missing where it can be read.
  auto log = TuningLog::Open(copies / "tuning.db", OpenMode::kRead);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).ok());
}

TEST(LogFileTest, PathsMayHoldAnyCharacter) {
  TempDir directory;
  const std::string path = MakeLog(directory, "a b?c#d%41&immutable=1\xc3\xa9.db", 2);
  EXPECT_EQ(Snapshot(directory.path()).count("a b?c#d%41&immutable=1\xc3\xa9.db"), 1u);
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kRead).ok());
}

}  // namespace
}  // namespace mycc
