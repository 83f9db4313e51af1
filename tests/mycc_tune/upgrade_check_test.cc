// `mycc-tune upgrade-check`, with a build that makes of each trace what the test likes.
#include "mycc_tune/upgrade_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kGpu[] = "v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=132 smem=232448 l2=60M";

class UpgradeCheckTest : public testing::Test {
 protected:
  void Add(RecordSpec spec, const std::string& digest) {
    spec.index = ++records_;
    v1::Record record = MakeRecord(spec);
    record.mutable_result()->set_code_digest(digest);
    ASSERT_TRUE(log_->Append({record}).ok());
  }
  // Code of every trace is "now", but of shapes 3 (none) and of GPUs (not to be told).
  UpgradeReport Check(const UpgradeCheckArgs& args = {}) {
    const auto report = CheckUpgrade(*log_, args, [this](const std::vector<StoredRecord>& records) {
      std::vector<CodeNow> codes;
      for (const StoredRecord& stored : records) {
        asked_.push_back(stored.id);
        const bool is_gone = stored.record.workload_hash() == WorkloadHashOf(3);
        codes.push_back(stored.record.target() == kGpu ? CodeNow{CodeNow::Kind::kUnknown, "no NVRTC here"}
                        : is_gone                      ? CodeNow{CodeNow::Kind::kRefused, "no loop `k`"}
                                                       : CodeNow{CodeNow::Kind::kDigest, "now"});
      }
      return codes;
    });
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }
  std::string Text(bool json) {
    std::ostringstream out;
    const UpgradeCheckArgs args{.log = "tuning.db", .json = json};
    WriteUpgradeReport(args, Check(args), out);
    return out.str();
  }
  void AddAll() {
    Add({.shape = 1}, "now");
    Add({.shape = 1, .seconds = 2e-3}, "before");  // not the best
    Add({.shape = 2}, "before");
    Add({.shape = 2, .protocol = v1::TIMING_PROTOCOL_MODEL}, "before");
    Add({.shape = 3}, "before");
    Add({.shape = 1, .target = kGpu}, "before");
  }

  TempDir directory_;
  std::unique_ptr<TuningLog> log_ = TuningLog::Open(directory_ / "tuning.db", OpenMode::kCreate).value();
  std::vector<int64_t> asked_;
  int records_ = 0;
};

TEST_F(UpgradeCheckTest, CountsByTargetAndWorkload) {
  AddAll();
  const std::string text = Text(/*json=*/false);
  EXPECT_THAT(asked_, testing::UnorderedElementsAre(1, 3, 4, 5, 6)) << "the best of each alone";
  EXPECT_THAT(
      text, HasSubstr("add_one " + WorkloadHashOf(2).substr(0, 12) + "     2     0        2     0        0"));
  EXPECT_THAT(text, HasSubstr("record 5 no longer replays: no loop `k`\n"));
  EXPECT_THAT(text, HasSubstr("unknown here: no NVRTC here\n"));
  EXPECT_THAT(
      text, HasSubstr("tuning.db: of 5 best records this build makes the same code of 1 and other code of 2; "
                      "1 no longer replay, 1 cannot be told here\n"));
  const std::vector<std::string> lines = absl::StrSplit(Text(/*json=*/true), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u) << "four keys, and the sum";
  const json all = json::parse(lines.back());
  EXPECT_EQ(all["changed_records"], json({3, 4}));
  EXPECT_EQ(all["gone_records"][0]["record"], 5);
  EXPECT_EQ(all["unknown"], 1);
  EXPECT_EQ(json::parse(lines[0])["records"], 1);
}

TEST_F(UpgradeCheckTest, ThoseAloneAreMeasuredAgain) {
  AddAll();
  const auto jobs = JobsOfChanged(*log_, Check());
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u) << "one of each protocol";
  EXPECT_EQ((*jobs)[0].protocol(), v1::TIMING_PROTOCOL_WARM);
  EXPECT_EQ((*jobs)[1].protocol(), v1::TIMING_PROTOCOL_MODEL);
  for (const v1::JobSpec& job : *jobs) {
    EXPECT_EQ(job.strategy(), "listed");
    ASSERT_EQ(job.tasks_size(), 1);
    EXPECT_EQ(job.tasks(0).target(), kTarget);
  }
  EXPECT_EQ((*jobs)[0].tasks(0).candidates(0), log_->Get(3)->record.trace());
}

TEST_F(UpgradeCheckTest, AFilterAndMoreThanTheBest) {
  AddAll();
  UpgradeCheckArgs args{.top = 3};
  args.filter.workload_hash = WorkloadHashOf(1).substr(0, 8);
  args.filter.target = kTarget;
  const UpgradeReport report = Check(args);
  EXPECT_THAT(asked_, testing::ElementsAre(1, 2));
  EXPECT_EQ(report.changed.size(), 1u);
}

TEST_F(UpgradeCheckTest, ManyRecordsAreReadInParts) {
  for (int shape = 1; shape <= 600; ++shape) Add({.shape = shape + 1000}, shape % 3 == 0 ? "before" : "now");
  size_t largest = 0, batches = 0;
  const auto report = CheckUpgrade(*log_, {}, [&](const std::vector<StoredRecord>& records) {
    largest = std::max(largest, records.size());
    ++batches;
    return std::vector<CodeNow>(records.size(), {CodeNow::Kind::kDigest, "now"});
  });
  EXPECT_EQ(report->changed.size(), 200u);
  EXPECT_EQ(batches, 3u);
  EXPECT_LE(largest, 256u);
}

}  // namespace
}  // namespace mycc
