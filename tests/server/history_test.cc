// The knowledge that a job takes from the log when it begins.
#include "server/history.h"

#include "absl/strings/substitute.h"
#include "db/foreign_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device_distance.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kOne[] = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";
constexpr char kOther[] = "v1 cpu mcpu=znver3 l1d=32K l2=512K threads=2";

class HistoryTest : public ::testing::Test {
 protected:
  static PlannedTask Product(int rows, const std::string& target = kOne) {
    v1::JobSpec spec;
    spec.add_tasks()->set_workload(
        absl::Substitute("workload g(x: f32[$0,8], w: f32[8,8]) -> (y: f32[$0,8]) {\n"
                         "  y[i,j] = sum[k:8](x[i,k] * w[k,j])\n}\n",
                         rows));
    spec.set_target(target);
    spec.set_trials(1);
    return PlanJob(spec)->tasks[0];
  }
  void Add(const PlannedTask& task, const std::string& trace, RecordSpec spec = {}) {
    spec.index = ++records_;
    spec.trace = trace;
    v1::Record record = MakeRecord(spec);
    record.set_workload(task.key.workload);
    record.set_workload_hash(task.key.workload_hash);
    record.set_shape_erased_hash(task.key.shape_erased_hash);
    record.set_target(task.key.target);
    const auto added = log_->Append({record});
    ASSERT_TRUE(added.ok()) << added.status();
  }
  static std::vector<std::string> Recall(History* history, const PlannedTask& task) {
    const auto stored = history->Recall(task, 100, false);
    EXPECT_TRUE(stored.ok()) << stored.status();
    return {stored->history().begin(), stored->history().end()};
  }

  TempDir folder_;
  std::unique_ptr<TuningLog> log_ = *TuningLog::Open(folder_ / "tuning.db", OpenMode::kCreate);
  int records_ = 0;
};

TEST_F(HistoryTest, AnEmptyLogRecallsNothing) {
  History history(log_.get());
  EXPECT_THAT(Recall(&history, Product(64)), IsEmpty());
}

// Their times say in which order to try them, after all own records; none is a reason to skip the search.
TEST_F(HistoryTest, ForeignRecordsAreCandidates) {
  const PlannedTask task = Product(64);
  Add(task, "v1 own", {.seconds = 5e-3});
  {
    Database* const database = log_->database();
    MutexLock lock(database->mutex());
    const int64_t signer = EnsureSigner(database, {"0123456789abcdef", "ann@host"}).value();
    for (const auto& [trace, seconds] : {std::pair("v1 slower", 2e-3), {"v1 fast", 1e-3}, {"v1 own", 1e-9}}) {
      v1::Record record =
          MakeRecord({.index = ++records_, .target = kOne, .seconds = seconds, .trace = trace});
      record.set_workload(task.key.workload);
      record.set_workload_hash(task.key.workload_hash);
      record.set_shape_erased_hash(task.key.shape_erased_hash);
      ASSERT_TRUE(InsertForeign(database, record, signer, 1).ok());
    }
  }
  History history(log_.get());
  EXPECT_THAT(Recall(&history, task), ElementsAre("v1 own", "v1 fast", "v1 slower"));
  EXPECT_EQ(*history.CountMeasured(task, 10), 1);
  EXPECT_FALSE(history.Recall(task, 3, false)->reused());
}

TEST_F(HistoryTest, OwnThenOtherTargetsThenTheNearestShapes) {
  Add(Product(64), "v1 slower", {.seconds = 2e-3});
  Add(Product(64), "v1 fast", {.seconds = 1e-3});
  Add(Product(64, kOther), "v1 elsewhere");
  for (const int rows : {16, 32, 60, 70, 200}) Add(Product(rows), absl::StrCat("v1 of ", rows));
  Add(Product(65, kOther), "v1 of 65 elsewhere");
  History history(log_.get());
  EXPECT_THAT(Recall(&history, Product(64)),
              ElementsAre("v1 fast", "v1 slower", "v1 elsewhere", "v1 of 60", "v1 of 70", "v1 of 32"));
  EXPECT_THAT(Recall(&history, Product(1000)), ElementsAre("v1 of 200", "v1 of 70", "v1 fast"));
  EXPECT_THAT(Recall(&history, Product(1)), ElementsAre("v1 of 16", "v1 of 32", "v1 of 60"));
}

// 512 products in both: the rows are what a schedule depends on.
TEST_F(HistoryTest, ShapesAreNearByTheirExtentsNotByTheirWork) {
  const auto product = [](int rows, int depth) {
    v1::JobSpec spec;
    spec.add_tasks()->set_workload(
        absl::Substitute("workload g(x: f32[$0,$1], w: f32[$1,8]) -> (y: f32[$0,8]) {\n"
                         "  y[i,j] = sum[k:$1](x[i,k] * w[k,j])\n}\n",
                         rows, depth));
    spec.set_target(kOne);
    spec.set_trials(1);
    return PlanJob(spec)->tasks[0];
  };
  Add(product(4, 128), "v1 deep");
  Add(product(60, 8), "v1 alike");
  History history(log_.get());
  EXPECT_THAT(Recall(&history, product(64, 8)), ElementsAre("v1 alike", "v1 deep"));
}

TEST_F(HistoryTest, OtherDevicesHelpWhereThisOneHasNoShapes) {
  constexpr char kWide[] = "v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=2";
  constexpr char kManyThreads[] = "v1 cpu mcpu=znver3 l1d=32K l2=512K threads=64";
  Add(Product(64, kWide), "v1 of wide vectors");
  Add(Product(200, kOther), "v1 of 200");
  Add(Product(70, kOther), "v1 of 70");
  Add(Product(64, kManyThreads), "v1 of many threads");
  History history(log_.get());
  EXPECT_THAT(Recall(&history, Product(65)), ElementsAre("v1 of 70", "v1 of 200", "v1 of many threads"));
  Add(Product(32), "v1 of 32 here");
  History next(log_.get());
  EXPECT_THAT(Recall(&next, Product(65)), ElementsAre("v1 of 32 here", "v1 of 70", "v1 of 200"));
}

TEST(DeviceDistanceTest, AClassOfDevicesCountsMoreThanSizes) {
  const auto distance = [](const char* a, const char* b) {
    return DeviceDistance(ParseTarget(a).value(), ParseTarget(b).value());
  };
  EXPECT_EQ(distance(kOne, kOne), 0);
  EXPECT_GT(distance("sapphirerapids threads=2", kOne), distance(kOther, kOne));
  EXPECT_GT(distance("v1 cpu mcpu=haswell l1d=32K l2=256K threads=16", kOne), distance(kOther, kOne));
  EXPECT_EQ(distance("h200", "h200"), 0);
  EXPECT_EQ(distance("h200", kOne), std::nullopt);
}

TEST_F(HistoryTest, ShapesWithoutABestArePassedOver) {
  Add(Product(63), "v1 wrong", {.status = v1::MEASURE_STATUS_WRONG_RESULT});
  Add(Product(65), "v1 cold", {.protocol = v1::TIMING_PROTOCOL_COLD});
  Add(Product(500), "v1 of 500");
  History history(log_.get());
  EXPECT_THAT(Recall(&history, Product(64)), ElementsAre("v1 of 500"));
}

// A job of thousands of tasks on a log of thousands of shapes: else each task would ask for all of them.
TEST_F(HistoryTest, TheLogIsAskedOnceForAShape) {
  Add(Product(32), "v1 of 32");
  Add(Product(33), "v1 wrong", {.status = v1::MEASURE_STATUS_WRONG_RESULT});
  History history(log_.get());
  EXPECT_THAT(Recall(&history, Product(34)), ElementsAre("v1 of 32"));
  Add(Product(33), "v1 right");
  Add(Product(32), "v1 faster", {.seconds = 1e-4});
  EXPECT_THAT(Recall(&history, Product(35)), ElementsAre("v1 of 32"));
  History next(log_.get());
  EXPECT_THAT(Recall(&next, Product(35)), ElementsAre("v1 right", "v1 faster"));
}

}  // namespace
}  // namespace mycc
