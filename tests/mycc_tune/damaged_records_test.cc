// Damage that SQLite does not see: what a record's row holds is not what was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "db/tuning_log.h"
#include "mycc_tune/log_commands.h"
#include "tests/db/test_log.h"
#include "tests/db/tuning_log_fixture.h"

namespace mycc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class DamagedRecordsTest : public testing::Test {
 protected:
  // Records 1 to `count`, the fastest first.
  void Fill(int count) {
    std::vector<v1::Record> records;
    for (int i = 1; i <= count; ++i) records.push_back(MakeRecord({.index = i, .seconds = 1e-3 * i}));
    ASSERT_TRUE(log_->Append(records).ok());
  }
  // The trace of every other one, and all else of the rest.
  void Damage(const std::vector<int64_t>& ids) {
    for (const int64_t id : ids) {
      const char* damage = id % 2 == 0 ? "UPDATE records SET trace = 'v1 another' WHERE id = ?1"
                                       : "UPDATE records SET detail = x'ffff' WHERE id = ?1";
      ASSERT_TRUE(log_->database()->Run(damage, {id}).ok());
    }
  }
  static absl::Status Run(const std::function<absl::Status(std::ostream&)>& command, std::string* output) {
    std::ostringstream out;
    const absl::Status status = command(out);
    *output = out.str();
    return status;
  }

  TempDir directory_;
  const std::string path_ = directory_ / "tuning.db";
  std::unique_ptr<TuningLog> log_ = *TuningLog::Open(path_, OpenMode::kCreate);
};

TEST_F(DamagedRecordsTest, AreErrorsWhereNobodyHearsOfThem) {
  Fill(2);
  Damage({1});
  for (const absl::Status& status :
       {log_->Best(KeyOf({}), kWarm).status(), log_->List({}).status(), log_->Get(1).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("record 1 is damaged"));
  }
}

// More than one page of a list is gone at its end, and both neighbours of a page's border.
TEST_F(DamagedRecordsTest, ArePassedOverAndToldOnce) {
  Fill(900);
  std::vector<int64_t> damaged = {1, 2, 256, 257, 512};
  for (int64_t id = 600; id <= 900; ++id) damaged.push_back(id);
  Damage(damaged);
  std::vector<int64_t> told;
  log_->OnDamage([&told](int64_t id, const absl::Status& why) {
    EXPECT_THAT(std::string(why.message()), HasSubstr("is damaged"));
    told.push_back(id);
  });
  EXPECT_EQ(log_->Best(KeyOf({}), kWarm)->id, 3);
  const auto top = log_->TopK(KeyOf({}), kWarm, 300);
  ASSERT_EQ(top->size(), 300u);
  EXPECT_EQ(top->back().id, 304);
  EXPECT_THAT(told, ElementsAre(1, 2, 256, 257));
  EXPECT_EQ(log_->BestOfShapes(MakeRecord({}).shape_erased_hash(), kWarm)->at(0).id, 3);
  EXPECT_EQ(log_->List({})->size(), 594u);
  for (const bool newest_first : {false, true}) {
    RecordFilter filter;
    filter.newest_first = newest_first;
    int visited = 0;
    EXPECT_TRUE(log_->ForEach(filter, [&](const StoredRecord&) { return ++visited, absl::OkStatus(); }).ok());
    EXPECT_EQ(visited, 594);
  }
  std::ranges::sort(told);
  EXPECT_EQ(told, damaged);
  EXPECT_EQ(log_->Get(1).status().code(), absl::StatusCode::kDataLoss) << "the very one is asked for";
}

TEST_F(DamagedRecordsTest, AreLeftOutByCommandsThatDoTheRestAndSaySo) {
  Fill(3);
  Damage({1, 2});
  ASSERT_TRUE(log_->Close().ok());
  const std::string moved = directory_ / "moved.db", lines = directory_ / "lines.jsonl";
  const std::vector<std::function<absl::Status(std::ostream&)>> commands = {
      [&](std::ostream& out) { return LogListCommand({.log = path_, .filter = {}}, out); },
      [&](std::ostream& out) { return LogListCommand({.log = path_, .filter = {}, .json = true}, out); },
      [&](std::ostream& out) { return LogExportCommand({.log = path_, .filter = {}}, out); },
      [&](std::ostream& out) { return LogExportCommand({.log = path_, .filter = {}, .output = lines}, out); },
      [&](std::ostream& out) { return LogMergeCommand({.log = moved, .inputs = {path_}}, out); }};
  for (const auto& command : commands) {
    std::string output;
    const absl::Status status = Run(command, &output);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(status.message(), path_ + ": damaged and left out: record 1, 2; restore the log from a backup");
    EXPECT_NE(output, "");
  }
  EXPECT_EQ((*TuningLog::Open(moved, OpenMode::kRead))->Best(KeyOf({}), kWarm)->record.trial(),
            MakeRecord({.index = 3}).trial());
  EXPECT_THAT(ReadBytes(lines), HasSubstr(MakeRecord({.index = 3}).trial()));
  std::string output;
  const auto remeasure = [](const v1::Record& record) { return record.result(); };
  EXPECT_EQ(
      Run([&](std::ostream& out) { return LogVerifyCommand({.log = path_, .filter = {}}, remeasure, out); },
          &output)
          .code(),
      absl::StatusCode::kDataLoss);
  EXPECT_THAT(output, HasSubstr("1 of 1 best records confirmed"));
}

}  // namespace
}  // namespace mycc
