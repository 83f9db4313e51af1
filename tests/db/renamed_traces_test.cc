// Traces that a log has under former names of primitives, and the same schedules under the current names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "db/database.h"
#include "db/json_lines.h"
#include "db/namesake.h"
#include "db/tuning_log.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFormer[] =
    "v1\nsketch tile cluster=2\nstage(t2, t0, t2.r0.0, shared)\nstream(t2.a0, 4, 1, 2)\n";
constexpr char kCurrent[] =
    "v1\nsketch tile cluster=2\nstage_shared(t2, t0, t2.r0.0, shared)\nstream_k(t2.a0, 4, 1, 2)\n";

class RenamedTracesTest : public ::testing::Test {
 protected:
  int64_t Append(const v1::Record& record) { return log_->Append({record}).value()[0].id; }
  std::vector<StoredRecord> Top() {
    return log_->TopK(KeyOf(RecordSpec()), v1::TIMING_PROTOCOL_WARM, 10).value();
  }
  // A column of a record, as the file has it.
  std::string Column(const std::string& name, int64_t id) { return Column(name, id, directory_ / "log.db"); }
  static std::string Column(const std::string& name, int64_t id, const std::string& path) {
    const std::unique_ptr<Database> file = Database::Open(path, Database::Access::kRead).value();
    Query query = file->Prepare("SELECT " + name + " FROM records WHERE id = ?1", {id}).value();
    EXPECT_TRUE(query.Next().value());
    return query.Text(0);
  }

  TempDir directory_;
  std::unique_ptr<TuningLog> log_ = TuningLog::Open(directory_ / "log.db", OpenMode::kCreate).value();
};

// Whichever version writes, the file is the same: an older one reads what a newer one wrote.
TEST_F(RenamedTracesTest, AreStoredUnderTheFirstNames) {
  const int64_t former = Append(MakeRecord({.index = 0, .trace = kFormer}));
  const int64_t current = Append(MakeRecord({.index = 1, .trace = kCurrent}));
  for (const int64_t id : {former, current}) {
    EXPECT_EQ(Column("trace", id), kFormer);
    EXPECT_EQ(Column("trace_hash", id), Sha256Hex(kFormer));
    EXPECT_EQ(log_->Get(id)->record.trace(), kCurrent);
  }
}

TEST_F(RenamedTracesTest, AreOneSchedule) {
  Append(MakeRecord({.index = 0, .seconds = 1e-3, .trace = kFormer}));
  const int64_t later = Append(MakeRecord({.index = 1, .seconds = 2e-3, .trace = kCurrent}));
  ASSERT_EQ(Top().size(), 1u) << "the later result speaks for the trace";
  EXPECT_EQ(Top()[0].id, later);
  EXPECT_EQ(log_->ValidRecordOf(MakeRecord({.index = 0, .trace = kFormer})).value()->id, later);
  Append(MakeRecord({.index = 2, .status = v1::MEASURE_STATUS_WRONG_RESULT, .trace = kFormer}));
  EXPECT_THAT(Top(), ::testing::IsEmpty());
}

TEST_F(RenamedTracesTest, ABanHoldsUnderBothNames) {
  const int64_t banned = Append(MakeRecord({.index = 0, .trace = kFormer}));
  ASSERT_TRUE(log_->SetOverride(banned, OverrideKind::kBan, "too hot").ok());
  Append(MakeRecord({.index = 1, .trace = kCurrent}));
  EXPECT_THAT(Top(), ::testing::IsEmpty());
}

TEST_F(RenamedTracesTest, AreExportedAndMergedUnderTheFirstNames) {
  Append(MakeRecord({.index = 0, .trace = kCurrent}));
  std::stringstream exported;
  ASSERT_TRUE(ExportJsonLines(*log_, {}, exported).ok());
  EXPECT_THAT(exported.str(), HasSubstr(R"(\nstage(t2, t0, t2.r0.0, shared)\nstream(t2.a0, 4, 1, 2)\n)"));
  EXPECT_THAT(exported.str(), Not(HasSubstr("stream_k")));
  EXPECT_EQ(ImportJsonLines(exported, "export", log_.get())->known, 1);

  const std::string path = directory_ / "merged.db";
  const std::unique_ptr<TuningLog> merged = TuningLog::Open(path, OpenMode::kCreate).value();
  ASSERT_EQ(MergeLog(*log_, merged.get())->added, 1);
  EXPECT_EQ(Column("trace", 1, path), kFormer);
}

// A record that was exported under the former names is known, as it is when logs are merged.
TEST_F(RenamedTracesTest, ImportedAgainAreKnown) {
  v1::Record former = MakeRecord({.index = 0, .trace = kFormer}), current = former;
  current.set_trace(kCurrent);
  EXPECT_EQ(ContentDigest(former), ContentDigest(current));
  Append(former);
  EXPECT_FALSE(log_->Append({current}).value()[0].is_new);
  EXPECT_EQ(log_->List({})->size(), 1u);
}

}  // namespace
}  // namespace mycc
