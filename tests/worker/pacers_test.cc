// Which candidate others are timed beside.
#include "worker/pacers.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

class PacersTest : public ::testing::Test {
 protected:
  static v1::Assignment Trial(const std::string& workload) {
    v1::Assignment trial;
    trial.set_workload(workload);
    trial.set_target("target");
    trial.set_protocol(v1::TIMING_PROTOCOL_WARM);
    return trial;
  }
  // A candidate was measured, and its library, whose bytes are its trace, is kept.
  void Measure(const v1::Assignment& trial, const std::string& trace, double seconds) {
    v1::BuildRequest build;
    build.set_workload(trial.workload());
    build.set_trace(trace);
    BuildOutcome built;
    built.built.set_library(absl::StrCat(folder_.path(), "/built.so"));
    ASSERT_TRUE(WriteFileAtomically(built.built.library(), trace).ok());
    pacers_.Learn(trial, build, seconds);
    kept_.Measured(build, "", built, /*good=*/true);
  }
  // "trace seconds" of the trial's pacer; "" where it has none.
  std::string PacerOf(const v1::Assignment& trial) {
    v1::RunRequest run;
    pacers_.SetTo(trial, &run);
    if (run.pacer().empty()) return "";
    const std::string trace = ReadFile(run.pacer()).value();
    std::filesystem::remove(run.pacer());
    return absl::StrCat(trace, " ", run.pacer_seconds());
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  KeptBuilds kept_{folder_.path(), {.builds = 2, .bytes = 100}};
  Pacers pacers_{&kept_};
};

TEST_F(PacersTest, TheFirstOneStaysUntilAnotherIsMuchFaster) {
  const v1::Assignment trial = Trial("w");
  EXPECT_EQ(PacerOf(trial), "");
  Measure(trial, "first", 1.0);
  EXPECT_EQ(PacerOf(trial), "first 1");
  Measure(trial, "little faster", 0.8);
  EXPECT_EQ(PacerOf(trial), "first 1");
  Measure(trial, "slower", 3.0);
  EXPECT_EQ(PacerOf(trial), "first 1");
  Measure(trial, "fast", 0.5);
  EXPECT_EQ(PacerOf(trial), "fast 0.5");
}

TEST_F(PacersTest, EachWorkloadAndProtocolHasItsOwn) {
  Measure(Trial("w"), "a", 1.0);
  EXPECT_EQ(PacerOf(Trial("v")), "");
  v1::Assignment model = Trial("w");
  model.set_protocol(v1::TIMING_PROTOCOL_MODEL);
  EXPECT_EQ(PacerOf(model), "");
  Measure(model, "b", 2.0);
  EXPECT_EQ(PacerOf(model), "b 2");
  EXPECT_EQ(PacerOf(Trial("w")), "a 1");
}

TEST_F(PacersTest, OneThatIsNotKeptIsReplaced) {
  const v1::Assignment trial = Trial("w");
  Measure(trial, "first", 1.0);
  for (const char* const other : {"x", "y"}) Measure(Trial(other), other, 1.0);
  EXPECT_EQ(PacerOf(trial), "");
  Measure(trial, "second", 1.2);
  EXPECT_EQ(PacerOf(trial), "second 1.2");
}

TEST_F(PacersTest, TheOldestWorkloadsAreForgotten) {
  for (size_t i = 0; i <= Pacers::kMost; ++i) pacers_.Learn(Trial(absl::StrCat(i)), {}, 1.0);
  // The build of all of these is the same one.
  BuildOutcome built;
  built.built.set_library(absl::StrCat(folder_.path(), "/built.so"));
  ASSERT_TRUE(WriteFileAtomically(built.built.library(), "all").ok());
  kept_.Measured({}, "", built, /*good=*/true);
  EXPECT_EQ(PacerOf(Trial("0")), "");
  EXPECT_EQ(PacerOf(Trial("1")), "all 1");
}

}  // namespace
}  // namespace mycc
