// Our own logs, replayed.
#include "laboratory/log_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "db/t4.h"
#include "laboratory/read_space.h"
#include "laboratory/replay.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTile[] = "v1\nsketch tile mr=4 nr=16\nsplit(i, [4])\n";
constexpr char kWide[] = "v1\nsketch tile mr=2 nr=32\nsplit(i, [2])\n";
constexpr char kRow[] = "v1\nsketch row lanes=8\nsplit(i, [8])\n";

class LogSpaceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto log = TuningLog::Open(directory_ / "tuning.db", OpenMode::kCreate);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  void Add(RecordSpec spec) {
    spec.index = next_++;
    Append(MakeRecord(spec));
  }
  void Append(const v1::Record& record) { ASSERT_TRUE(log_->Append({record}).ok()); }
  void AddTask() {
    Add({.seconds = 2e-3, .trace = kTile});
    Add({.status = v1::MEASURE_STATUS_BUILD_ERROR, .trace = kWide});
    Add({.seconds = 3e-3, .trace = kRow});
    Add({.trace = "v1\nsplit(i, [3])\n"});                           // hand-written
    Add({.status = v1::MEASURE_STATUS_DEVICE_LOST, .trace = kRow});  // says nothing
  }

  TempDir directory_;
  std::unique_ptr<TuningLog> log_;
  int next_ = 0;
};

void ExpectTask(const RecordedSpace& space) {
  std::vector<std::string> names;
  for (const SpaceParameter& parameter : space.parameters) names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("sketch", "mr", "nr", "lanes"));
  EXPECT_THAT(space.parameters[0].values, ElementsAre("tile", "row"));
  EXPECT_THAT(space.parameters[1].values, ElementsAre("2", "4"));
  ASSERT_EQ(space.configurations.size(), 3u);
  EXPECT_THAT(space.configurations[0].choices, ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(space.configurations[0].failure, "compile");
  EXPECT_THAT(space.configurations[1].choices, ElementsAre(0, 1, 0, 0));
  ASSERT_FALSE(space.configurations[1].run_seconds.empty());
  EXPECT_NEAR(space.configurations[1].run_seconds[1], 2e-3, 1e-9);
  EXPECT_THAT(space.configurations[2].choices, ElementsAre(1, 0, 0, 0));
}

TEST_F(LogSpaceTest, TheTrialsOfATaskAreASpace) {
  AddTask();
  const auto space = ReadLogSpace(*log_, {WorkloadHashOf(64), kTarget});
  ASSERT_TRUE(space.ok()) << space.status();
  ExpectTask(*space);
}

// One sample met a disturbance, which moves the mean and not what ranks.
TEST_F(LogSpaceTest, ATimeIsTheOneThatRanks) {
  v1::Record disturbed = MakeRecord({.index = next_++, .seconds = 2e-3, .trace = kTile});
  disturbed.mutable_result()->mutable_timing()->set_samples_seconds(0, 1.0);
  Append(disturbed);
  Add({.seconds = 3e-3, .trace = kRow, .rank_seconds = 1.5e-3});  // of a final round, at a slower moment
  const auto space = ReadLogSpace(*log_, {WorkloadHashOf(64), kTarget});
  ASSERT_TRUE(space.ok()) << space.status();
  const auto replay = SpaceReplay::Make(*space);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->Seconds(0), 2e-3);
  EXPECT_EQ(replay->Seconds(1), 1.5e-3);
  EXPECT_EQ(replay->optimum_seconds(), 1.5e-3);
  // The samples are what noise draws from, at the moment of the others.
  EXPECT_THAT(space->configurations[0].run_seconds, ElementsAre(1.0, 2e-3, 0.99 * 2e-3));
  EXPECT_NEAR(space->configurations[1].run_seconds[1], 1.5e-3, 1e-12);
  // Building and all that followed, which is more than the samples.
  EXPECT_DOUBLE_EQ(replay->Measure(0, nullptr).cost_seconds, 0.25 + 0.5);
}

TEST_F(LogSpaceTest, AnExportInT4IsTheSameSpace) {
  AddTask();
  std::ostringstream out;
  ASSERT_TRUE(ExportT4(*log_, {}, out).ok());
  WriteBytes(directory_ / "t4.json", out.str());
  const auto space = ReadRecordedSpace(directory_ / "t4.json", nullptr);
  ASSERT_TRUE(space.ok()) << space.status();
  ExpectTask(*space);
}

TEST_F(LogSpaceTest, RefusesWhatIsNotOneTask) {
  EXPECT_EQ(
      ReadLogSpace(*log_, {"gemm", ""}).status().message(),
      directory_ /
          "tuning.db: no trial of the workload \"gemm\"; expected the name or the hash of one that the log "
          "has: none");
  AddTask();
  EXPECT_THAT(std::string(ReadLogSpace(*log_, {"no such name", ""}).status().message()),
              testing::EndsWith("that the log has: " + WorkloadsOfLog(*log_).value()));
  EXPECT_THAT(WorkloadsOfLog(*log_).value(), testing::Not(testing::AnyOf("", "none")));
  Add({.target = kOtherTarget, .trace = kTile});
  EXPECT_THAT(std::string(ReadLogSpace(*log_, {WorkloadHashOf(64), ""}).status().message()),
              HasSubstr("trials of more than one target, \"" + std::string(kTarget)));
  EXPECT_TRUE(ReadLogSpace(*log_, {WorkloadHashOf(64), kTarget}).ok());
  Add({.protocol = v1::TIMING_PROTOCOL_COLD, .trace = kWide});
  EXPECT_THAT(std::string(ReadLogSpace(*log_, {WorkloadHashOf(64), kTarget}).status().message()),
              HasSubstr("more than one timing protocol"));
}

}  // namespace
}  // namespace mycc
