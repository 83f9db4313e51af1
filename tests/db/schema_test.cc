// Migrations of older logs, which keep everything that the logs hold.
#include "db/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "db/constants_store.h"
#include "db/foreign_table.h"
#include "db/job_store.h"
#include "db/server_key.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

// A log as an older version left it; data/ says what it holds.
std::string MakeOldLog(const TempDir& directory, const std::string& version) {
  const std::string path = directory / (version + ".db");
  WriteBytes(path, "");
  auto database = Database::Open(path, Database::Access::kReadWrite);
  EXPECT_TRUE(database.ok()) << database.status();
  const std::string source = std::getenv("MYCC_SOURCE_DIR") == nullptr ? "." : std::getenv("MYCC_SOURCE_DIR");
  const absl::Status loaded =
      (*database)->Execute(ReadBytes(source + "/tests/db/data/log_" + version + ".sql"));
  EXPECT_TRUE(loaded.ok()) << loaded;
  return path;
}

TEST(SchemaTest, AnOlderLogIsBroughtUpToDateWithAllItHolds) {
  TempDir directory;
  const std::string path = MakeOldLog(directory, "v1");
  const absl::Status read_only = LogFile::Open(path, OpenMode::kRead).status();
  EXPECT_EQ(read_only.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(read_only.message()), testing::HasSubstr("is a log of the older version 1"));

  auto log = TuningLog::Open(path, OpenMode::kWrite);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(*ReadVersion((*log)->database()), SchemaVersion());
  // The records that log_v1.sql was made from.
  const RecordSpec specs[] = {{.index = 0, .seconds = 3e-3},
                              {.index = 1, .seconds = 2e-3},
                              {.index = 2, .status = v1::MEASURE_STATUS_BUILD_ERROR},
                              {.index = 3, .shape = 128, .protocol = v1::TIMING_PROTOCOL_COLD}};
  for (const RecordSpec& spec : specs) {
    auto stored = (*log)->Get(spec.index + 1);
    ASSERT_TRUE(stored.ok()) << stored.status();
    v1::Record expected = MakeRecord(spec);
    expected.mutable_result()->mutable_device()->clear_throttled_by();  // not recorded yet
    EXPECT_TRUE(SameMessage(stored->record, expected)) << stored->record.DebugString();
  }
  EXPECT_EQ((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->id, 1);  // pinned
  EXPECT_EQ((*log)->List({})->size(), 4u);

  JobStore jobs(log->get());
  EXPECT_TRUE(jobs.CreateJob({.id = JobId(1)}, {}).ok());
  ASSERT_TRUE((*log)->Close().ok());
  EXPECT_TRUE(LogFile::Open(path, OpenMode::kRead).ok());
}

TEST(SchemaTest, EachLogHasAKeyOfItsOwn) {
  TempDir directory;
  std::string key;
  {
    auto log = TuningLog::Open(MakeOldLog(directory, "v1"), OpenMode::kWrite);
    ASSERT_TRUE(log.ok()) << log.status();
    key = *ReadServerKey(**log);
    EXPECT_EQ(key.size(), 32u);
  }
  auto again = TuningLog::Open(directory / "v1.db", OpenMode::kWrite);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*ReadServerKey(**again), key);
  auto other = TuningLog::Open(directory / "other.db", OpenMode::kServe);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(*ReadServerKey(**other), key);
}

// In version 3 a worker's clock decided which result of a trace was the newest.
TEST(SchemaTest, AnOlderLogsResultsSpeakInTheOrderInWhichTheyWereRecorded) {
  TempDir directory;
  auto log = TuningLog::Open(MakeOldLog(directory, "v3"), OpenMode::kWrite);
  ASSERT_TRUE(log.ok()) << log.status();
  std::vector<int64_t> superseded, ranked;
  const auto records = (*log)->List({}), top = (*log)->TopK(KeyOf({}), v1::TIMING_PROTOCOL_WARM, 9);
  ASSERT_TRUE(records.ok() && top.ok());
  for (const StoredRecord& stored : *records) {
    if (stored.superseded) superseded.push_back(stored.id);
  }
  for (const StoredRecord& stored : *top) ranked.push_back(stored.id);
  EXPECT_EQ(superseded, (std::vector<int64_t>{1, 3, 5, 7}));  // it was 4, 5 and 7
  EXPECT_EQ(ranked, (std::vector<int64_t>{6, 4}));            // it was 1, 3 and 6
  EXPECT_EQ((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_COLD)->id, 9);
  EXPECT_EQ(JobStore(log->get()).GetJob(JobId(1))->message, "all trials are measured");

  v1::Record next = MakeRecord({.index = 50, .shape = 65});
  next.set_recorded_unix_micros(0);
  auto early = TuningLog::Open((*log)->path(), OpenMode::kWrite, [] { return int64_t{1}; });
  ASSERT_TRUE((*early)->Append({next}).ok());
  EXPECT_EQ((*early)->Get(10)->record.recorded_unix_micros(), 1700000000000091) << "after the latest stamp";
}

// Version 8 had no records of others.
TEST(SchemaTest, AnOlderLogTakesInForeignRecords) {
  TempDir directory;
  auto log = TuningLog::Open(MakeOldLog(directory, "v8"), OpenMode::kWrite);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->Best(KeyOf({.target = kWholeTarget}), v1::TIMING_PROTOCOL_WARM)->id, 2) << "pinned";
  EXPECT_EQ(CountForeign(**log)->records, 0);
  {
    Database* const database = (*log)->database();
    MutexLock lock(database->mutex());
    const auto signer = EnsureSigner(database, {"0123456789abcdef", "ann@host"});
    ASSERT_TRUE(signer.ok()) << signer.status();
    EXPECT_TRUE(
        InsertForeign(database, MakeRecord({.index = 0, .target = kWholeTarget}), *signer, 1).value());
    EXPECT_TRUE(
        InsertForeign(database, MakeRecord({.index = 7, .target = kWholeTarget}), *signer, 1).value());
  }
  EXPECT_EQ(CountForeign(**log)->waiting, 1) << "the trace of the other one was measured by version 8";
  EXPECT_EQ((*log)->Best(KeyOf({.target = kWholeTarget}), v1::TIMING_PROTOCOL_WARM)->id, 2);
}

// Versions before 11 had no constants of devices.
TEST(SchemaTest, AnOlderLogTakesInConstants) {
  for (const char* const version : {"v1", "v3", "v8"}) {
    TempDir directory;
    auto log = TuningLog::Open(MakeOldLog(directory, version), OpenMode::kWrite);
    ASSERT_TRUE(log.ok()) << log.status();
    ConstantsStore store(log->get());
    EXPECT_TRUE(store.List()->empty());
    StoredConstants constants;
    constants.device = "cpu";
    constants.constants.set_version(1);
    (*constants.constants.mutable_values())["clock_cycles_per_second"] = 3e9;
    ASSERT_TRUE(store.Save(constants).ok());
    EXPECT_EQ(store.List()->size(), 1u);
  }
}

TEST(SchemaTest, AMigrationThatFailsLeavesTheFileAsItWas) {
  TempDir directory;
  const std::string path = MakeOldLog(directory, "v1");
  const std::string before = ReadBytes(path);
  {
    auto database = Database::Open(path, Database::Access::kReadWrite);
    const char* const migrations[] = {Migrations()[0],
                                      "CREATE TABLE extra (x); INSERT INTO extra VALUES (1); CREATE TABLE"};
    EXPECT_FALSE(Migrate(database->get(), migrations).ok());
    EXPECT_EQ(*ReadVersion(database->get()), 1);
    EXPECT_EQ(*(*database)->ReadInt("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'"), 0);
  }
  EXPECT_EQ(ReadBytes(path), before);
}

TEST(SchemaTest, ANewLogEqualsAMigratedOne) {
  TempDir directory;
  const auto tables = [](Database* database) {
    return *database->ReadText(
        "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema ORDER BY name)");
  };
  auto migrated = TuningLog::Open(MakeOldLog(directory, "v1"), OpenMode::kWrite);
  auto made = TuningLog::Open(directory / "new.db", OpenMode::kCreate);
  ASSERT_TRUE(migrated.ok() && made.ok());
  EXPECT_EQ(tables((*migrated)->database()), tables((*made)->database()));
  EXPECT_EQ(*(*made)->database()->ReadInt("PRAGMA application_id"), kApplicationId);
}

TEST(SchemaTest, ForeignKeysAndFullSynchronizationAreOn) {
  TempDir directory;
  auto log = TuningLog::Open(directory / "new.db", OpenMode::kCreate);
  EXPECT_EQ(*(*log)->database()->ReadInt("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(*(*log)->database()->ReadInt("PRAGMA synchronous"), 2);
  EXPECT_EQ(*(*log)->database()->ReadText("PRAGMA journal_mode"), "wal");
  EXPECT_FALSE((*log)->database()->Run("INSERT INTO keys (workload, target) VALUES (7, 7)").ok());
}

}  // namespace
}  // namespace mycc
