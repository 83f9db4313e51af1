// How a model is cut, by a log with made-up times and by a lock file.
#include "mycc/groupings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "codegen/driver/compile.h"
#include "codegen/graph/builder.h"
#include "codegen/workload/canonical.h"
#include "mycc/lock_file.h"
#include "mycc/model_report.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two equal layers, each a product with a long epilogue: y = erf(x w).
Graph TwoLayers() {
  GraphBuilder b("net");
  Buffer x = b.AddInput("x", DType::kF32, {64, 64});
  NDArray zeros = NDArray::Zeros(DType::kF32, {64, 64});
  const Buffer w = b.AddConstant(std::move(zeros));
  for (int i = 0; i < 2; ++i) {
    b.SetOrigins({"MatMul m"});
    const Buffer product = b.Reduce(ReduceOp::kSum, {64, 64}, {64}, [&](const Axes& a, const Axes& r) {
      return Load(x, {a[0], r[0]}) * Load(w, {r[0], a[1]});
    });
    b.SetOrigins({"Erf e"});
    x = b.Map({64, 64}, [&](const Axes& a) { return MakeUnary(Op::kErf, Load(product, a)); });
  }
  b.AddOutput("y", x);
  return b.Finish();
}

class GroupingsTest : public ::testing::Test {
 protected:
  // A run of the naive schedule.
  void Record(const Workload& workload, double seconds, const Target& target,
              v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_WARM) {
    v1::Record record;
    record.set_trial(absl::StrCat("j0123456789abcdef/0/0/", ++trials_));
    record.set_workload(CanonicalText(workload));
    record.set_workload_hash(WorkloadHash(workload));
    record.set_shape_erased_hash(ShapeErasedHash(workload));
    record.set_target(PrintTarget(target));
    record.set_trace(PrintTrace({}));
    v1::MeasureResult* result = record.mutable_result();
    result->set_status(v1::MEASURE_STATUS_OK);
    result->mutable_verification()->set_passed(true);
    result->mutable_timing()->set_protocol(protocol);
    result->mutable_timing()->set_timer_version(1);
    result->mutable_timing()->set_seconds(seconds);
    result->set_code_digest("0123456789abcdef");
    ASSERT_TRUE(log_->Append({record}).ok());
  }
  void Record(const Workload& workload, double seconds) { Record(workload, seconds, target_); }

  std::vector<ChosenGrouping> Fastest() const {
    return FastestGroupings(program_, ScheduleFinder(log_.get(), target_)).value();
  }

  const absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
  const std::unique_ptr<TuningLog> log_ =
      TuningLog::Open(folder_->path() + "/log.db", OpenMode::kCreate).value();
  const Target target_ = ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=2M threads=2").value();
  const Graph graph_ = TwoLayers();
  const ModelProgram program_ = MakeProgram(graph_);
  const Alternative& split_ = program_.alternatives.at(0);
  int trials_ = 0;
};

TEST_F(GroupingsTest, TheSmallerSumOfMeasuredTimesDecides) {
  ASSERT_EQ(program_.kernels.size(), 1);
  Record(program_.kernels[0], 5e-3);
  Record(split_.parts[0], 3e-3);
  Record(split_.parts[1], 2.5e-3);
  EXPECT_THAT(Fastest(), IsEmpty());
  Record(split_.parts[1], 1e-3);
  const std::vector<ChosenGrouping> chosen = Fastest();
  ASSERT_EQ(chosen.size(), 1);
  EXPECT_EQ(chosen[0].name, split_.name);
  EXPECT_EQ(GroupingLine(chosen[0]),
            "k0_matmul_erf: split into k0a_matmul and k0b_erf, 8.000 ms instead of 10.000 ms by the log");
  EXPECT_EQ(MakeProgram(graph_, {chosen[0].name}).launches.size(), 4);
}

TEST_F(GroupingsTest, WithoutAllTimesTheDefaultStays) {
  EXPECT_THAT(Fastest(), IsEmpty());
  Record(split_.parts[0], 1e-3);
  Record(split_.parts[1], 1e-3);
  EXPECT_THAT(Fastest(), IsEmpty()) << "no time of the kernel";
  Target other = target_;
  other.l2_bytes /= 2;
  Record(program_.kernels[0], 5e-3, other);
  EXPECT_THAT(Fastest(), IsEmpty()) << "of another target";
  Record(program_.kernels[0], 5e-3, target_, v1::TIMING_PROTOCOL_COLD);
  EXPECT_THAT(Fastest(), IsEmpty()) << "of another protocol";
  Record(program_.kernels[0], 5e-3);
  EXPECT_EQ(Fastest().size(), 1);
  EXPECT_THAT(FastestGroupings(program_, ScheduleFinder(nullptr, target_)).value(), IsEmpty());
}

// The other layout replaces all launches; the split of the kernel that it replaces counts against it.
TEST_F(GroupingsTest, ALayoutIsChosenWhereItIsFasterThanTheBestCuts) {
  ModelProgram program = program_;
  Workload part = split_.parts[0];
  part.count = 2;
  program.alternatives.push_back({"layout:planes", {program_.kernels[0]}, {part}});
  const auto names = [&] {
    std::vector<std::string> chosen;
    const auto groupings = FastestGroupings(program, ScheduleFinder(log_.get(), target_));
    for (const ChosenGrouping& grouping : *groupings) chosen.push_back(GroupingLine(grouping));
    return chosen;
  };
  Record(program_.kernels[0], 5e-3);
  Record(split_.parts[0], 3e-3);
  EXPECT_THAT(names(), ElementsAre("images: planes, 6.000 ms instead of 10.000 ms by the log"));
  Record(split_.parts[1], 1e-3);
  EXPECT_THAT(names(), ElementsAre("images: planes, 6.000 ms instead of 8.000 ms by the log"));
  Record(split_.parts[1], 1e-5);
  EXPECT_THAT(
      names(),
      ElementsAre(
          "k0_matmul_erf: split into k0a_matmul and k0b_erf, 6.020 ms instead of 10.000 ms by the log"))
      << "the layout gains less than the margin";
}

TEST_F(GroupingsTest, ALockKeepsTheChoice) {
  Record(program_.kernels[0], 5e-3);
  Record(split_.parts[0], 3e-3);
  Record(split_.parts[1], 1e-3);
  const ScheduleFinder finder(log_.get(), target_);
  const std::vector<ChosenGrouping> chosen = Fastest();
  const ModelProgram program = MakeProgram(graph_, {chosen.at(0).name});
  std::vector<Found> found;
  for (const Workload& kernel : program.kernels) found.push_back(finder.Find(kernel).value());
  const std::string table = ModelTable(program, found, chosen);
  EXPECT_THAT(table, HasSubstr(GroupingLine(chosen[0])));
  EXPECT_THAT(table, HasSubstr("expected in all: 8.000 ms\n4 launches of 2 kernels"));

  const std::string file = folder_->path() + "/net.lock";
  const std::string text = PrintLock(LockOf(ModelSource{}, target_, found, &program, chosen).value());
  ASSERT_TRUE(WriteFileAtomically(file, text).ok());
  const LockFile lock = ReadLock(file).value();
  EXPECT_THAT(lock.groupings, ElementsAre(split_.name));
  const std::vector<ChosenGrouping> again = GroupingsNamed(program_, lock.groupings).value();
  EXPECT_EQ(GroupingLine(again.at(0)),
            "k0_matmul_erf: split into k0a_matmul and k0b_erf, from the lock file");
  const ModelProgram locked = MakeProgram(graph_, {again[0].name});
  EXPECT_TRUE(CompileLocked(lock, locked.kernels, target_, &locked).ok());
  EXPECT_EQ(PrintLock(lock), text);
}

TEST_F(GroupingsTest, ALockOfAnotherModelIsRefused) {
  const auto named = GroupingsNamed(program_, {"0123:padding"});
  EXPECT_EQ(named.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(named.status().message()), HasSubstr("the grouping 0123:padding of the lock file"));
}

}  // namespace
}  // namespace mycc
