// Measured figures in place of a family's, within bounds, and what the search's scorer makes of them.
#include "tuner/cost/machine_constants.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/device_constants.h"
#include "tests/tuner/schedules.h"
#include "tuner/cost/schedule_scorer.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::DeviceConstants Measured(const std::map<std::string, double>& values) {
  v1::DeviceConstants constants;
  constants.set_version(kConstantsVersion);
  constants.mutable_values()->insert(values.begin(), values.end());
  return constants;
}

TEST(MachineConstantsTest, WithoutConstantsTheMachineIsItsFamilys) {
  for (const Target& target : {Avx2Target(2), Avx512Target(8), *ParseTarget("h200")})
    EXPECT_EQ(FiguresText(MeasuredMachine(target, {})), FiguresText(Machine(target)));
}

TEST(MachineConstantsTest, MeasuredFiguresReplaceTheFamilys) {
  std::vector<std::string> ignored;
  const Machine machine = MeasuredMachine(Avx512Target(8),
                                          Measured({{kThreadsConstant, 16},
                                                    {kClockConstant, 2e9},
                                                    {kPeakOfThread, 96e9},
                                                    {kPeakOfAll, 768e9},
                                                    {kFmaLatency, 2.5e-9},
                                                    {kL1OfThread, 192e9},
                                                    {kL2OfThread, 60e9},
                                                    {kL2OfAll, 960e9},
                                                    {kL3OfThread, 20e9},
                                                    {kL3OfAll, 100e9},
                                                    {kMemoryOfThread, 10e9},
                                                    {kMemoryOfAll, 60e9},
                                                    {kLaunchTime, 10.4e-6}}),
                                          &ignored);
  EXPECT_THAT(ignored, IsEmpty());
  EXPECT_DOUBLE_EQ(machine.row.ghz, 2);
  EXPECT_DOUBLE_EQ(machine.row.fma_per_cycle, 1.5);  // of vectors of 16
  EXPECT_DOUBLE_EQ(machine.row.fma_latency, 5);
  EXPECT_EQ(machine.row.loads_per_cycle, Machine(Avx512Target(8)).row.loads_per_cycle);
  EXPECT_DOUBLE_EQ(machine.row.l2_bytes_per_cycle, 30);
  EXPECT_DOUBLE_EQ(machine.row.l3_bytes_per_cycle, 10);
  EXPECT_DOUBLE_EQ(machine.row.dram_bytes_per_cycle, 5);
  EXPECT_DOUBLE_EQ(machine.core_threads, 8);
  EXPECT_DOUBLE_EQ(machine.l2_threads, 16);
  EXPECT_DOUBLE_EQ(machine.l3_threads, 5);
  EXPECT_DOUBLE_EQ(machine.dram_threads, 6);
  // It was measured with 16 threads, twice what these have by the family's figures: 5.2 us.
  EXPECT_DOUBLE_EQ(machine.region_seconds, 10.4e-6 * 3.6 / 5.2);
}

TEST(MachineConstantsTest, AGpusFiguresToo) {
  const Target target = *ParseTarget("h200");
  const double sms = Machine(target).gpu->sms;
  std::vector<std::string> ignored;
  const Machine machine = MeasuredMachine(target,
                                          Measured({{kPeakOfAll, 2 * 128 * sms * 1.5e9},
                                                    {kMemoryOfAll, 4e12},
                                                    {kL2OfAll, 7e12},
                                                    {kMemoryLatency, 8e-7},
                                                    {kLaunchTime, 1.5e-6}}),
                                          &ignored);
  EXPECT_THAT(ignored, IsEmpty());
  EXPECT_DOUBLE_EQ(machine.gpu->row.ghz, 1.5);
  EXPECT_DOUBLE_EQ(machine.gpu->row.dram_bytes_per_second, 4e12);
  EXPECT_DOUBLE_EQ(machine.gpu->row.l2_bytes_per_second, 7e12);
  EXPECT_DOUBLE_EQ(machine.gpu->row.dram_seconds, 8e-7);
  EXPECT_DOUBLE_EQ(machine.gpu->launch_seconds, 1.5e-6);
}

TEST(MachineConstantsTest, WhatIsFarFromTheFamilysFigureIsIgnoredWithTheReason) {
  const Target target = Avx512Target();
  std::vector<std::string> ignored;
  const Machine machine = MeasuredMachine(
      target, Measured({{kClockConstant, 3e9}, {kMemoryOfThread, 3e8}, {kL2OfThread, 3e13}}), &ignored);
  EXPECT_EQ(FiguresText(machine), FiguresText(Machine(target)));
  EXPECT_THAT(ignored, ElementsAre("bytes a cycle from L2 of 1e+04; expected 5 to 320",
                                   HasSubstr("bytes a cycle from memory of 0.1; expected 0.5 to 32")));
}

TEST(MachineConstantsTest, AllThreadsReachWhatOneDoes) {
  std::vector<std::string> ignored;
  const Machine machine =
      MeasuredMachine(Avx2Target(2), Measured({{kPeakOfThread, 1e11}, {kPeakOfAll, 9e10}}), &ignored);
  EXPECT_EQ(machine.core_threads, Machine(Avx2Target(2)).core_threads);
  EXPECT_THAT(ignored, ElementsAre(HasSubstr("peak_flops_per_second_all_threads of 9e+10; expected 1e+11")));
}

TEST(MachineConstantsTest, AllThreadsDoNotReachManyTimesWhatTheirNumberDoes) {
  std::vector<std::string> ignored;
  const Target target = Avx2Target(2);
  const Machine machine = MeasuredMachine(
      target, Measured({{kThreadsConstant, 2}, {kMemoryOfThread, 1e10}, {kMemoryOfAll, 1e17}}), &ignored);
  EXPECT_EQ(machine.dram_threads, Machine(target).dram_threads);
  EXPECT_THAT(ignored, ElementsAre("memory_bytes_per_second_all_threads of 1e+17; expected 1e+10, which one "
                                   "thread reaches, to 1.6e+11"));
}

TEST(MachineConstantsTest, ConstantsOfAnotherVersionAreIgnored) {
  v1::DeviceConstants constants = Measured({{kClockConstant, 2e9}});
  constants.set_version(kConstantsVersion + 1);
  EXPECT_EQ(FiguresText(MeasuredMachine(Avx2Target(), constants)), FiguresText(Machine(Avx2Target())));
}

TEST(MachineConstantsTest, AScorerPredictsWithThemAndDoesNotTakeTheMemoOfOthers) {
  const Workload gemm = Canonicalize(*ParseWorkload(GemmText(256, 256, 256), "test"));
  const Trace trace = *ParseTrace("v1\n" + TiledGemmSteps(6, 16, 4, 4, false, true));
  const Machine half = MeasuredMachine(Avx2Target(), Measured({{kClockConstant, 1.65e9}}));
  const auto appraiser = std::make_shared<Appraiser>();
  ScheduleScorer usual(gemm, Avx2Target(), "gemm", nullptr, appraiser),
      slow(gemm, Avx2Target(), "gemm", nullptr, appraiser, half);
  const double usual_seconds = usual.Score({&trace})[0]->seconds,
               slow_seconds = slow.Score({&trace})[0]->seconds;
  EXPECT_GT(slow_seconds, 1.9 * usual_seconds);
  EXPECT_LT(slow_seconds, 2 * usual_seconds);  // but for the call
  EXPECT_EQ(usual.Score({&trace})[0]->seconds, usual_seconds);
  EXPECT_EQ(*EstimateSeconds(
                ScheduleOf(GemmText(256, 256, 256), TiledGemmSteps(6, 16, 4, 4, false, true), Avx2Target())
                    .function(),
                Avx2Target()),
            usual_seconds);
}

TEST(MachineConstantsTest, ThreadsThatShareCoresAreSlower) {
  const Workload gemm = Canonicalize(*ParseWorkload(GemmText(256, 256, 256), "test"));
  const Trace trace = *ParseTrace("v1\n" + TiledGemmSteps(6, 16, 4, 4, true, true));
  const auto seconds_of = [&](double all) {
    const Machine machine =
        MeasuredMachine(Avx2Target(2), Measured({{kPeakOfThread, 1e11}, {kPeakOfAll, all}}));
    return ScheduleScorer(gemm, Avx2Target(2), "gemm", nullptr, std::make_shared<Appraiser>(), machine)
        .Score({&trace})[0]
        ->seconds;
  };
  EXPECT_GT(seconds_of(1e11), 1.5 * seconds_of(2e11));
  EXPECT_EQ(seconds_of(2e11), seconds_of(3e11));
}

}  // namespace
}  // namespace mycc
