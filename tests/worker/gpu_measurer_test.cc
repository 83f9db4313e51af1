// A GPU's measurer among candidates that misbehave: each costs itself alone. One program runs with a driver
// that has no device, another on this machine's GPU.
#include "worker/gpu_measurer.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/child.h"
#include "process/confine.h"
#include "process/fork_server_main.h"
#include "process/host_lock.h"
#include "process/limits.h"
#include "proto/device_constants.h"
#include "proto/names.h"
#include "proto/proof.h"
#include "tests/worker/misbehaving.h"
#include "tuner/cost/machine_constants.h"
#include "worker/gpu_runner.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// The builders add each trace that they build to the file that this variable names.
constexpr char kBuilt[] = "MYCC_TEST_BUILT_TRACES";

class GpuMeasurerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    gpu_ = new Gpu(DescribeGpu(0).value());
    built_ = new TemporaryFolder(TemporaryFolder::Create().value());
    ASSERT_EQ(setenv(kBuilt, (built_->path() + "/traces").c_str(), 1), 0);
    BuildLimits limits;
    limits.wall_seconds = 120;  // one of the kernels keeps a busy host's compiler for longer than usual
    builders_ = new BuildPool(2, limits);
    GpuMeasurerOptions options;
    options.first_call_seconds = 0.5;
    options.confinement.mode = ConfinementMode::kWherePossible;
    auto made = GpuMeasurer::Create(
        *gpu_, builders_, options, [](const std::string& line) { std::cout << line << std::endl; }, Fetch);
    ASSERT_TRUE(made.ok()) << made.status();
    measurer_ = made->release();
    std::cout << "not confined in: " << measurer_->unconfined() << std::endl;
  }
  static void TearDownTestSuite() {
    delete measurer_;
    delete builders_;
    delete gpu_;
    delete built_;
    measurer_ = nullptr;
  }

  // Builds of another host, as a server might give them: gone, of other bytes, or no kernel.
  static absl::StatusOr<std::string> Fetch(const std::string& digest) {
    if (digest == Sha256Hex("no kernel")) return "no kernel";
    if (digest == Sha256Hex("others")) return "other bytes";
    return absl::FailedPreconditionError("gone");
  }

  // How often the trace was built.
  static int64_t BuildsOf(const std::string& trace) {
    std::ifstream file(built_->path() + "/traces");
    int64_t builds = 0;
    for (std::string line; std::getline(file, line);) builds += line == trace ? 1 : 0;
    return builds;
  }

  static bool IsFake() { return gpu_->target.model == "Fake GPU"; }

  // The same workload under another name: the measurer has not seen it.
  static std::string DoublingNamed(const std::string& name) {
    return absl::StrCat("workload ", name, std::string(kDoubling).substr(strlen("workload doubling")));
  }

  static v1::Assignment AssignmentOf(const std::string& trace) {
    v1::Assignment assignment;
    assignment.mutable_lease()->set_trial(trace);
    assignment.set_workload(kDoubling);
    assignment.set_target(PrintTarget(gpu_->target));
    assignment.set_trace(trace);
    assignment.set_protocol(v1::TIMING_PROTOCOL_COLD);
    assignment.set_seed(++seed_);
    return assignment;
  }

  static std::vector<v1::MeasureResult> MeasureInTurn(const std::vector<std::string>& traces,
                                                      v1::TimingProtocol protocol) {
    v1::Assignment assignment = AssignmentOf(traces[0]);
    assignment.mutable_rivals()->Add(traces.begin() + 1, traces.end());
    assignment.set_protocol(protocol);
    std::vector<v1::MeasureResult> measured;
    measurer_->Measure(
        {assignment}, [](const v1::LeaseId&) { return false; },
        [&measured](const v1::Assignment&, std::vector<v1::MeasureResult> results) {
          measured = std::move(results);
        });
    return measured;
  }

  static v1::MeasureResult Measure(const v1::Assignment& assignment) {
    v1::MeasureResult measured;
    measurer_->Measure(
        {assignment}, [](const v1::LeaseId&) { return false; },
        [&measured](const v1::Assignment&, std::vector<v1::MeasureResult> results) {
          measured = std::move(results[0]);
        });
    return measured;
  }

  // The results by trace, of assignments of one workload. It is the same one until another assignment is
  // made.
  static std::map<std::string, v1::MeasureResult> MeasureAsBatch(
      const std::vector<v1::Assignment*>& assignments, double best_seconds, bool all_hold = true) {
    std::vector<v1::Assignment> batch;
    for (v1::Assignment* assignment : assignments) {
      assignment->set_workload(DoublingNamed(absl::StrCat("doubling", seed_)));
      assignment->set_seed(static_cast<uint64_t>(seed_));
      assignment->set_best_seconds(best_seconds);
      batch.push_back(*assignment);
    }
    std::map<std::string, v1::MeasureResult> results;
    measurer_->Measure(
        batch, [](const v1::LeaseId&) { return false; },
        [&results](const v1::Assignment& of, const std::vector<v1::MeasureResult>& measured) {
          results[of.trace()] = measured[0];
        });
    EXPECT_EQ(results.size(), batch.size());
    for (const auto& [trace, result] : results) {
      if (all_hold) {
        EXPECT_EQ(result.status(), v1::MEASURE_STATUS_OK) << trace << ": " << result.error();
      }
    }
    return results;
  }

  // A binary that is known is not timed again, so each good one has a seed of its own in its trace.
  static void ExpectGood() {
    v1::Assignment assignment = AssignmentOf("good");
    assignment.set_workload(DoublingNamed(absl::StrCat("doubling", seed_)));
    const v1::MeasureResult result = Measure(assignment);
    ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
    EXPECT_TRUE(result.verification().passed());
    EXPECT_EQ(result.verification().elements_checked(), 64000u);
    EXPECT_EQ(result.timing().protocol(), v1::TIMING_PROTOCOL_COLD);
    EXPECT_GE(result.timing().samples_seconds_size(), 4);
    EXPECT_GT(result.timing().seconds(), 1e-7);
    EXPECT_LT(result.timing().seconds(), 1e-3);
    EXPECT_GT(result.timing().baseline_seconds(), 1e-5);
    EXPECT_GT(result.timing().run_seconds(), 0);
    EXPECT_EQ(result.device().device(), "cuda:0");
    EXPECT_THAT(result.toolchain().nvrtc(), HasSubstr("nvrtc"));
  }

  static void ExpectFailure(const std::string& trace, v1::MeasureStatus status, const std::string& error) {
    const v1::MeasureResult result = Measure(AssignmentOf(trace));
    EXPECT_EQ(v1::MeasureStatus_Name(result.status()), v1::MeasureStatus_Name(status)) << result.error();
    EXPECT_THAT(result.error(), HasSubstr(error));
    EXPECT_NE(result.reproduction(), "");
    EXPECT_EQ(result.timing().seconds(), 0);
    ExpectGood();
  }

  static Gpu* gpu_;
  static BuildPool* builders_;
  static GpuMeasurer* measurer_;
  static int seed_;
  static TemporaryFolder* built_;
};

Gpu* GpuMeasurerTest::gpu_ = nullptr;
BuildPool* GpuMeasurerTest::builders_ = nullptr;
GpuMeasurer* GpuMeasurerTest::measurer_ = nullptr;
int GpuMeasurerTest::seed_ = 0;
TemporaryFolder* GpuMeasurerTest::built_ = nullptr;

TEST_F(GpuMeasurerTest, Good) { ExpectGood(); }

TEST_F(GpuMeasurerTest, ConstantsAreMeasuredBetweenTwoCandidates) {
  ExpectGood();
  const absl::StatusOr<v1::DeviceConstants> measured = measurer_->MeasureConstants([] { return false; });
  ASSERT_TRUE(measured.ok()) << measured.status();
  ExpectGood();
  for (const char* const name : {kPeakOfAll, kMemoryOfAll, kL2OfAll, kMemoryLatency, kLaunchTime}) {
    EXPECT_TRUE(measured->values().contains(name)) << name;
    std::cout << name << ": " << ConstantOf(*measured, name) << std::endl;
  }
  if (IsFake()) return;  // its kernels do nothing
  std::vector<std::string> wrong;
  const v1::DeviceConstants sound = SoundConstants(*measured, &wrong);
  (void)MeasuredMachine(gpu_->target, sound, &wrong);
  EXPECT_THAT(wrong, ::testing::IsEmpty());
  EXPECT_GT(ConstantOf(sound, kL2OfAll), ConstantOf(sound, kMemoryOfAll));
}

TEST_F(GpuMeasurerTest, ConstantsAreGivenUpWhileAnotherHoldsTheDevice) {
  const HostLock held(HostLock::Mode::kTiming, gpu_->uuid);
  EXPECT_EQ(measurer_->MeasureConstants([] { return true; }).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(GpuMeasurerTest, ItBuildsWhatItCannotFetch) {
  for (const std::string& digest : {std::string("gone"), Sha256Hex("others"), Sha256Hex("no kernel")}) {
    v1::Assignment assignment = AssignmentOf("good");
    assignment.set_artifact(digest);
    const v1::MeasureResult result = Measure(assignment);
    EXPECT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
  }
}

TEST_F(GpuMeasurerTest, WhatWasMeasuredIsNotBuiltAgain) {
  v1::Assignment assignment = AssignmentOf("good");
  assignment.set_workload(DoublingNamed("again"));
  const int64_t before = BuildsOf("good");
  for (int i = 0; i < 3; ++i) {
    const v1::MeasureResult result = Measure(assignment);
    ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
    EXPECT_GT(result.timing().build_seconds(), 0);
    EXPECT_EQ(BuildsOf("good"), before + 1);
  }
  // Another trace of a round is built, the known one is not.
  const int64_t slow_before = BuildsOf("slow");
  assignment.add_rivals("slow");
  EXPECT_EQ(Measure(assignment).status(), v1::MEASURE_STATUS_OK);
  EXPECT_EQ(BuildsOf("good"), before + 1);
  EXPECT_EQ(BuildsOf("slow"), slow_before + 1);
  // A failure is not kept.
  assignment.clear_rivals();
  assignment.set_trace("flaky");
  assignment.set_best_seconds(0);
  const int64_t flaky_before = BuildsOf("flaky");
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(Measure(assignment).status(), v1::MEASURE_STATUS_WRONG_RESULT);
    EXPECT_EQ(BuildsOf("flaky"), flaky_before + i);
  }
}

TEST_F(GpuMeasurerTest, WarmSamplesAreOfSeveralCalls) {
  v1::Assignment assignment = AssignmentOf("good");
  assignment.set_protocol(v1::TIMING_PROTOCOL_WARM);
  const v1::MeasureResult result = Measure(assignment);
  ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
  EXPECT_EQ(result.timing().protocol(), v1::TIMING_PROTOCOL_WARM);
  EXPECT_LT(result.timing().seconds(), 1e-3);
}

TEST_F(GpuMeasurerTest, FinalRoundTimesInTurn) {
  for (const auto protocol : {v1::TIMING_PROTOCOL_COLD, v1::TIMING_PROTOCOL_WARM}) {
    const std::vector<v1::MeasureResult> results = MeasureInTurn({"slow", "good"}, protocol);
    ASSERT_EQ(results.size(), 2u);
    for (const v1::MeasureResult& result : results) {
      ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
      EXPECT_TRUE(result.verification().passed());
      EXPECT_EQ(result.timing().protocol(), protocol);
      EXPECT_GE(result.timing().samples_seconds_size(), 2) << "a busy host has time for few";
      EXPECT_GT(result.timing().baseline_seconds(), 1e-5);
      EXPECT_GT(result.timing().run_seconds(), 0);
      EXPECT_NE(result.code_digest(), "");
      EXPECT_EQ(result.device().device(), "cuda:0");
    }
    EXPECT_EQ(results[0].timing().samples_seconds_size(), results[1].timing().samples_seconds_size());
    EXPECT_GT(results[0].timing().seconds(), 1.01 * results[1].timing().seconds());
  }
}

TEST_F(GpuMeasurerTest, WhoIsWrongInAFinalRoundIsOutAlone) {
  const std::vector<v1::MeasureResult> results =
      MeasureInTurn({"input", "good", "flaky", "no trace", "slow"}, v1::TIMING_PROTOCOL_COLD);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0].status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_EQ(results[0].error(), "the kernel wrote to its input x");
  EXPECT_EQ(results[1].status(), v1::MEASURE_STATUS_OK) << results[1].error();
  EXPECT_EQ(results[2].status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_EQ(results[2].timing().seconds(), 0);
  EXPECT_THAT(results[2].reproduction(), HasSubstr("flaky"));
  EXPECT_EQ(results[3].status(), v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_EQ(results[4].status(), v1::MEASURE_STATUS_OK) << results[4].error();
  ExpectGood();
}

TEST_F(GpuMeasurerTest, FinalRoundThatFaultsHasOneResult) {
  const std::vector<v1::MeasureResult> results =
      MeasureInTurn({"good", "fault", "slow"}, v1::TIMING_PROTOCOL_COLD);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status(), v1::MEASURE_STATUS_RUN_ERROR);
  EXPECT_THAT(results[0].error(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  ExpectGood();
}

TEST_F(GpuMeasurerTest, WrongInOneElement) {
  ExpectFailure("wrong", v1::MEASURE_STATUS_WRONG_RESULT, "output y: element 777 is ");
}

TEST_F(GpuMeasurerTest, LeavesAnElementOut) {
  ExpectFailure("forgetful", v1::MEASURE_STATUS_WRONG_RESULT, "output y: element 31999 is ");
}

TEST_F(GpuMeasurerTest, WritesBesideItsOutput) {
  ExpectFailure("beside", v1::MEASURE_STATUS_WRONG_RESULT, "the kernel wrote beside its output y");
}

// Right on all numbers of [-1, 1]. The next candidate of the same case finds the ordinary inputs.
TEST_F(GpuMeasurerTest, WrongWhereItsInputsAreSpecial) {
  const v1::Assignment bad = AssignmentOf("finite");
  const v1::MeasureResult result = Measure(bad);
  EXPECT_EQ(result.status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_THAT(result.error(), HasSubstr("output y: element "));
  EXPECT_THAT(result.error(), HasSubstr(" is 0, expected "));
  EXPECT_THAT(result.error(), HasSubstr(", on inputs with special values"));
  EXPECT_FALSE(result.verification().passed());
  EXPECT_EQ(result.timing().seconds(), 0);
  v1::Assignment good = AssignmentOf("good");
  good.set_seed(bad.seed());
  const v1::MeasureResult next = Measure(good);
  EXPECT_EQ(next.status(), v1::MEASURE_STATUS_OK) << next.error();
}

// The inputs of a case serve all its candidates, so the next one of the same case must find them whole.
TEST_F(GpuMeasurerTest, WritesToItsInput) {
  v1::Assignment bad = AssignmentOf("input");
  const v1::MeasureResult result = Measure(bad);
  EXPECT_EQ(result.status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_EQ(result.error(), "the kernel wrote to its input x");
  v1::Assignment wrong = AssignmentOf("wrong");
  wrong.set_seed(bad.seed());
  wrong.set_protocol(v1::TIMING_PROTOCOL_WARM);
  EXPECT_THAT(Measure(wrong).error(), HasSubstr("element 777"));
}

TEST_F(GpuMeasurerTest, RightOnceAndWrongThen) {
  ExpectFailure("flaky", v1::MEASURE_STATUS_WRONG_RESULT,
                "launch 2 left other bits than launch 1 in 1 of 64000 elements of output y, the first of "
                "them element 0");
}

// Within every tolerance, and seldom.
TEST_F(GpuMeasurerTest, OneBitInEveryThirteenthLaunchIsWrong) {
  ExpectFailure("restless", v1::MEASURE_STATUS_WRONG_RESULT, "in 1 of 64000 elements of output y");
}

TEST_F(GpuMeasurerTest, WhoMayBeTheBestIsProven) {
  v1::Assignment assignment = AssignmentOf("slow");
  assignment.set_workload(DoublingNamed(absl::StrCat("doubling", seed_)));
  assignment.set_best_seconds(1e-9);
  const v1::MeasureResult behind = Measure(assignment);
  ASSERT_EQ(behind.status(), v1::MEASURE_STATUS_OK) << behind.error();
  EXPECT_GE(behind.verification().launches(), 2u);
  EXPECT_FALSE(IsProven(behind.verification()));
  assignment.clear_best_seconds();
  const v1::MeasureResult leading = Measure(assignment);
  ASSERT_EQ(leading.status(), v1::MEASURE_STATUS_OK) << leading.error();
  EXPECT_TRUE(IsProven(leading.verification()));
  EXPECT_TRUE(leading.verification().passed());
  EXPECT_GE(leading.verification().strained_launches(), kProvenLaunches);
  EXPECT_EQ(leading.verification().launches(), leading.verification().strained_launches() + 1);
  EXPECT_GT(leading.timing().seconds(), 0);
  const std::vector<v1::MeasureResult> round = MeasureInTurn({"slow", "good"}, v1::TIMING_PROTOCOL_COLD);
  EXPECT_TRUE(IsProven(round[1].verification())) << round[1].error();
}

// The leases of a batch were given when none of it was measured.
TEST_F(GpuMeasurerTest, WhoIsBehindOneOfItsBatchIsNotProven) {
  bool good_came_first = false;
  for (int attempt = 0; attempt < 20 && !good_came_first; ++attempt) {
    v1::Assignment good = AssignmentOf("good"), slow = AssignmentOf("slow");
    std::map<std::string, v1::MeasureResult> results = MeasureAsBatch({&good, &slow}, /*best_seconds=*/0);
    EXPECT_TRUE(IsProven(results["good"].verification()));
    good_came_first = results["good"].started_unix_micros() < results["slow"].started_unix_micros();
    if (good_came_first) {
      EXPECT_FALSE(IsProven(results["slow"].verification()));
    }
  }
  EXPECT_TRUE(good_came_first);
}

// Both are built already the second time, so that the faster one waits while the slower one is measured.
TEST_F(GpuMeasurerTest, WhoIsOvertakenWhileOthersWaitIsNotProven) {
  v1::Assignment slow = AssignmentOf("slow"), good = AssignmentOf("good");
  MeasureAsBatch({&slow, &good}, /*best_seconds=*/1e-9);
  std::map<std::string, v1::MeasureResult> results = MeasureAsBatch({&slow, &good}, /*best_seconds=*/0);
  EXPECT_FALSE(IsProven(results["slow"].verification()));
  EXPECT_TRUE(IsProven(results["good"].verification()));
}

// Both are in one file. The first one's result is the other's.
TEST_F(GpuMeasurerTest, EqualBinariesThatWaitAreProvenOnce) {
  v1::Assignment first = AssignmentOf("slow"), twin = AssignmentOf("slow");
  twin.mutable_lease()->set_trial("twin");
  for (const double best_seconds : {1e-9, 0.0}) {
    std::vector<v1::MeasureResult> results;
    for (v1::Assignment* assignment : {&first, &twin}) {
      assignment->set_workload(DoublingNamed(absl::StrCat("doubling", seed_)));
      assignment->set_seed(static_cast<uint64_t>(seed_));
      assignment->set_best_seconds(best_seconds);
    }
    measurer_->Measure(
        {first, twin}, [](const v1::LeaseId&) { return false; },
        [&results](const v1::Assignment&, const std::vector<v1::MeasureResult>& measured) {
          results.push_back(measured[0]);
        });
    ASSERT_EQ(results.size(), 2u);
    for (const v1::MeasureResult& result : results) {
      ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
      EXPECT_EQ(IsProven(result.verification()), best_seconds == 0);
    }
  }
}

// The faster one does not hold beside a neighbour.
TEST_F(GpuMeasurerTest, WhereALeaderFailsItsProofTheNextOneIsProven) {
  if (!IsFake()) GTEST_SKIP() << "a device does not crash its driver at will";
  v1::Assignment slow = AssignmentOf("slow"), shy = AssignmentOf("shy");
  for (const double best_seconds : {1e-9, 0.0}) {
    std::map<std::string, v1::MeasureResult> results =
        MeasureAsBatch({&slow, &shy}, best_seconds, /*all_hold=*/false);
    if (best_seconds > 0) continue;  // both are built now
    EXPECT_EQ(results["shy"].status(), v1::MEASURE_STATUS_WRONG_RESULT);
    EXPECT_TRUE(IsProven(results["slow"].verification())) << results["slow"].error();
  }
}

TEST_F(GpuMeasurerTest, Faults) {
  ExpectFailure("fault", v1::MEASURE_STATUS_RUN_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(GpuMeasurerTest, Hangs) {
  ExpectFailure("hang", v1::MEASURE_STATUS_RUN_TIMEOUT, "took longer than 0.5 s");
}

TEST_F(GpuMeasurerTest, SpillsAreNotMeasured) {
  v1::Assignment assignment = AssignmentOf(
      "v1\nsplit(t2.a0, [24])\nsplit(t2.a1, [32, 24])\nreorder([t2.a0.0, t2.a1.0, t2.a1.1, t2.r0, t2.a0.1, "
      "t2.a1.2])\n"
      "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\nbind(t2.a1.1, thread)\ncache_write(t2, t2.a1.1)\n"
      "bind(t2.a0.1, unroll)\nbind(t2.a1.2, unroll)\nbind(t2.i.a0.1, unroll)\nbind(t2.i.a1.2, unroll)\n"
      "bind(t2.w.a0.1, unroll)\nbind(t2.w.a1.2, unroll)\n");
  assignment.set_workload(R"(workload gemm(x: f32[512,64], w: f32[64,512]) -> (y: f32[512,512]) {
  y[i,j] = sum[k:64](x[i,k] * w[k,j])
})");
  const v1::MeasureResult result = Measure(assignment);
  EXPECT_EQ(result.status(), v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_THAT(result.error(), HasSubstr("spills"));
  EXPECT_GT(result.resources().spill_bytes(), 0u);
  ExpectGood();
}

TEST_F(GpuMeasurerTest, WhatOnlyADriverDoes) {
  if (!IsFake()) GTEST_SKIP() << "a device does not crash its driver at will";
  ExpectFailure("shy", v1::MEASURE_STATUS_WRONG_RESULT,
                "beside a busy neighbour, launch 2 left other bits than launch 1 in 1 of 64000 elements");
  ExpectFailure("crash", v1::MEASURE_STATUS_RUN_ERROR, "the run died of SIGSEGV");
  ExpectFailure("killed", v1::MEASURE_STATUS_WORKER_LOST, "killed by somebody else");
  ExpectFailure("gone", v1::MEASURE_STATUS_DEVICE_LOST, "CUDA_ERROR_ECC_UNCORRECTABLE");
}

TEST_F(GpuMeasurerTest, RealSchedules) {
  if (IsFake()) GTEST_SKIP() << "there is no device to run them";
  v1::Assignment assignment = AssignmentOf(
      "v1\nfuse([t1.a0, t1.a1])\nsplit(t1.a0+a1, [256])\nbind(t1.a0+a1.0, block)\nbind(t1.a0+a1.1, "
      "thread)\n");
  const v1::MeasureResult result = Measure(assignment);
  ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
  EXPECT_GT(result.resources().registers_per_thread(), 0u);
  EXPECT_GT(result.device().clock_mhz(), 0);
  EXPECT_GT(result.device().power_limit_watts(), 0);
}

TEST_F(GpuMeasurerTest, SeveralBatchesAtOnce) {
  std::vector<std::thread> lanes;
  Mutex mutex;
  std::multiset<std::string> done;
  for (int lane = 0; lane < 3; ++lane) {
    std::vector<v1::Assignment> batch;
    for (const char* trace : {"good", "wrong", "fault", "beside", "good"}) {
      batch.push_back(AssignmentOf(trace));
      batch.back().mutable_lease()->set_attempt(static_cast<uint32_t>(lane));
    }
    batch[3].mutable_lease()->set_trial("revoked");
    lanes.emplace_back([batch, &mutex, &done] {
      measurer_->Measure(
          batch, [](const v1::LeaseId& lease) { return lease.trial() == "revoked"; },
          [&](const v1::Assignment& assignment, const std::vector<v1::MeasureResult>& results) {
            const MutexLock lock(&mutex);
            done.insert(absl::StrCat(assignment.trace(), " ", v1::MeasureStatus_Name(results[0].status())));
          });
    });
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(done.size(), 12u);
  EXPECT_EQ(done.count("good MEASURE_STATUS_OK"), 6u);
  EXPECT_EQ(done.count("wrong MEASURE_STATUS_WRONG_RESULT"), 3u);
  EXPECT_EQ(done.count("fault MEASURE_STATUS_RUN_ERROR"), 3u);
}

// Two candidates wait for a reference whose builder is killed by somebody else.
TEST_F(GpuMeasurerTest, ReferenceWhoseBuilderIsKilledIsBuiltAgain) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  BuildPool unlucky(2, BuildLimits());  // whose builders hand on the environment that they begin with
  ASSERT_EQ(setenv(kUnluckyBuild, (folder.path() + "/met").c_str(), 1), 0);
  auto measurer = GpuMeasurer::Create(*gpu_, &unlucky, GpuMeasurerOptions(), nullptr);
  ASSERT_TRUE(measurer.ok()) << measurer.status();
  std::vector<std::string> statuses;
  (*measurer)->Measure(
      {AssignmentOf("good"), AssignmentOf("slow")}, [](const v1::LeaseId&) { return false; },
      [&statuses](const v1::Assignment&, const std::vector<v1::MeasureResult>& results) {
        statuses.push_back(absl::StrCat(StatusName(results[0].status()), results[0].error()));
      });
  ASSERT_EQ(unsetenv(kUnluckyBuild), 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/met"));
  EXPECT_EQ(statuses, (std::vector<std::string>{"ok", "ok"}));
}

int NumChildren() {
  int children = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "children");
    for (int pid = 0; file >> pid;) ++children;
  }
  return children;
}

TEST_F(GpuMeasurerTest, ZLeavesNoProcess) {
  delete measurer_;
  measurer_ = nullptr;
  delete builders_;
  builders_ = nullptr;
  EXPECT_EQ(NumChildren(), 0);
}

std::string AnswerBuild(const std::string& payload) {
  v1::BuildRequest request;
  (void)request.ParseFromString(payload);
  if (const char* built = std::getenv(kBuilt); built != nullptr)
    std::ofstream(built, std::ios::app) << request.trace() << "\n";
  return BuildMisbehaving(request).SerializeAsString();
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == mycc::kBuildCommand) return mycc::ForkServerMain(mycc::AnswerBuild);
  if (command == mycc::kGpuRunCommand || command == mycc::kConfineCommand) {
    const auto confinement = mycc::Confinement::FromArguments({argv + 3, argv + argc});
    if (!confinement.ok()) return 1;
    if (command == mycc::kConfineCommand) return mycc::ConfineMain(*confinement, std::atoi(argv[2]));
    mycc::Confine(*confinement, std::atoi(argv[2]));
    return mycc::GpuRunnerMain();
  }
  testing::InitGoogleMock(&argc, argv);
  if (const auto gpu = mycc::DescribeGpu(0); !gpu.ok()) {
    std::cout << "skipped: " << gpu.status().message() << std::endl;
    return 77;
  }
  return RUN_ALL_TESTS();
}
