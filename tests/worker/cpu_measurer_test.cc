// Real kernels on this machine's CPU, through builder and runner processes of their own.
#include "worker/cpu_measurer.h"

#include "codegen/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/internal_commands.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kDoubling[] =
    "workload doubling(x: f32[64000]) -> (y: f32[64000]) {\n  y[i] = x[i] * 2.0\n}\n";
constexpr char kPlain[] = "v1\n", kBlocked[] = "v1\nsplit(t1.a0, [640])\n",
               kVectors[] = "v1\nsplit(t1.a0, [8])\nbind(t1.a0.1, vector)\n",
               kNone[] = "v1\nsplit(t9.a0, [2])\n";

class CpuMeasurerTest : public ::testing::Test {
 protected:
  std::vector<v1::MeasureResult> Measure(const std::vector<std::string>& traces,
                                         v1::TimingProtocol protocol) {
    v1::Assignment assignment;
    assignment.set_workload(kDoubling);
    assignment.set_target(PrintTarget(DetectHostTarget()));
    assignment.set_trace(traces[0]);
    assignment.mutable_rivals()->Add(traces.begin() + 1, traces.end());
    assignment.set_protocol(protocol);
    assignment.set_seed(1);
    std::vector<v1::MeasureResult> measured;
    measurer_->Measure(
        {assignment}, [](const v1::LeaseId&) { return false; },
        [&measured](const v1::Assignment&, std::vector<v1::MeasureResult> results) {
          measured = std::move(results);
        });
    return measured;
  }

  const std::unique_ptr<CpuMeasurer> measurer_ = CpuMeasurer::Create({}).value();
};

TEST_F(CpuMeasurerTest, FinalRoundTimesInTurnWhateverIsKnown) {
  ASSERT_EQ(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0].status(), v1::MEASURE_STATUS_OK);
  for (const auto protocol : {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD}) {
    const std::vector<v1::MeasureResult> results = Measure({kPlain, kBlocked, kVectors}, protocol);
    ASSERT_EQ(results.size(), 3u);
    for (const v1::MeasureResult& result : results) {
      ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
      EXPECT_TRUE(result.verification().passed());
      EXPECT_EQ(result.verification().elements_checked(), 64000u);
      EXPECT_EQ(result.timing().protocol(), protocol);
      EXPECT_EQ(result.timing().samples_seconds_size(), results[0].timing().samples_seconds_size());
      EXPECT_GE(result.timing().samples_seconds_size(), 2);
      EXPECT_GT(result.timing().seconds(), 1e-7);
      EXPECT_EQ(result.timing().baseline_seconds(), results[0].timing().baseline_seconds());
      EXPECT_GT(result.timing().baseline_seconds(), 0);
      EXPECT_EQ(result.device().device(), "cpu");
      EXPECT_NE(result.code_digest(), "");
      EXPECT_NE(result.toolchain().llvm(), "");
    }
    EXPECT_NE(results[0].code_digest(), results[2].code_digest());
  }
}

TEST_F(CpuMeasurerTest, WhoCannotBeBuiltIsOutAlone) {
  const std::vector<v1::MeasureResult> results = Measure({kNone, kPlain, kVectors}, v1::TIMING_PROTOCOL_WARM);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status(), v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_THAT(results[0].reproduction(), HasSubstr("t9.a0"));
  EXPECT_EQ(results[1].status(), v1::MEASURE_STATUS_OK) << results[1].error();
  EXPECT_EQ(results[2].status(), v1::MEASURE_STATUS_OK) << results[2].error();
  EXPECT_EQ(results[1].timing().samples_seconds_size(), results[2].timing().samples_seconds_size());
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  if (const std::optional<int> code = mycc::RunInternalCommand(argc, argv)) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
