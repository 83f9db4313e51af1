// Results as they are filled in, apart from any device.
#include "worker/result_book.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/proof.h"

namespace mycc {
namespace {

// A compiler may print megabytes. A server refuses a message with such a text, with the results beside it.
TEST(ResultBookTest, AnErrorIsCutToWhatAServerTakes) {
  const std::string words(2 << 20, 'e');
  v1::MeasureResult result;
  Fail(v1::MEASURE_STATUS_BUILD_ERROR, words, &result);
  EXPECT_EQ(result.error(), words.substr(0, 64 << 10));
  v1::RunnerResponse response;
  response.set_error(words);
  TakeResponse(response, &result);
  EXPECT_EQ(result.error(), words.substr(0, 64 << 10));
}

// A device on which all runs hold, and proofs of `broken` fail. Rivals take `rival_seconds`.
struct CountingDevice {
  std::vector<std::string> proven;
  std::string broken;
  double rival_seconds = 1.01e-3;

  static v1::RunnerResponse Sound(double seconds) {
    v1::RunnerResponse response;
    response.set_status(v1::MEASURE_STATUS_OK);
    response.mutable_timing()->set_seconds(seconds);
    response.mutable_timing()->set_ci_high_seconds(1.02 * seconds);
    response.mutable_verification()->set_passed(true);
    response.mutable_verification()->set_launches(1);
    return response;
  }

  Lane MakeLane() {
    return {[this](const std::vector<std::string>& libraries, v1::MeasureResult*) {
              v1::RunnerResponse response = Sound(1e-3);
              for (size_t i = 1; i < libraries.size(); ++i) *response.add_rivals() = Sound(rival_seconds);
              return response;
            },
            [this](const std::string& library, double, v1::MeasureResult*) {
              proven.push_back(library);
              v1::RunnerResponse response = Sound(0);
              response.mutable_verification()->set_strained_launches(kProvenLaunches);
              if (library == broken) response.set_status(v1::MEASURE_STATUS_WRONG_RESULT);
              return response;
            }};
  }
};

// A final round of a and b.
v1::Assignment RoundOfTwo() {
  v1::Assignment round;
  round.set_workload("w");
  round.add_rivals("the trace of b");
  return round;
}

BuildOutcome BuiltAs(const std::string& library) {
  BuildOutcome outcome;
  outcome.built.set_library(library);
  outcome.built.set_code_digest("digest of " + library);
  return outcome;
}

TEST(ResultBookTest, ABinaryIsProvenOnceForAWorkload) {
  CountingDevice device;
  ResultBook book{v1::Toolchain()};
  v1::Assignment first;
  first.set_workload("w");
  EXPECT_TRUE(IsProven(book.Make(first, {BuiltAs("a")}, device.MakeLane())[0].verification()));
  v1::Assignment round = RoundOfTwo();
  for (int turn = 0; turn < 2; ++turn) {
    for (const v1::MeasureResult& result :
         book.Make(round, {BuiltAs("a"), BuiltAs("b")}, device.MakeLane())) {
      EXPECT_EQ(result.status(), v1::MEASURE_STATUS_OK);
      EXPECT_TRUE(IsProven(result.verification()));
    }
  }
  EXPECT_EQ(device.proven, (std::vector<std::string>{"a", "b"}));
  round.set_workload("another");
  (void)book.Make(round, {BuiltAs("a"), BuiltAs("b")}, device.MakeLane());
  EXPECT_EQ(device.proven, (std::vector<std::string>{"a", "b", "a", "b"}));
}

TEST(ResultBookTest, AFailedProofIsNotRemembered) {
  CountingDevice device{.broken = "b"};
  ResultBook book{v1::Toolchain()};
  const v1::Assignment round = RoundOfTwo();
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<v1::MeasureResult> results =
        book.Make(round, {BuiltAs("a"), BuiltAs("b")}, device.MakeLane());
    EXPECT_EQ(results[0].status(), v1::MEASURE_STATUS_OK);
    EXPECT_EQ(results[1].status(), v1::MEASURE_STATUS_WRONG_RESULT);
    EXPECT_EQ(results[1].timing().seconds(), 0);
  }
  EXPECT_EQ(device.proven, (std::vector<std::string>{"a", "b", "b"}));
}

TEST(ResultBookTest, OnlyTiesOfTheFastestAreProvenInARound) {
  CountingDevice device{.rival_seconds = 1.1e-3};
  ResultBook book{v1::Toolchain()};
  const v1::Assignment round = RoundOfTwo();
  const std::vector<v1::MeasureResult> results =
      book.Make(round, {BuiltAs("a"), BuiltAs("b")}, device.MakeLane());
  EXPECT_TRUE(IsProven(results[0].verification()));
  EXPECT_EQ(results[1].status(), v1::MEASURE_STATUS_OK);
  EXPECT_FALSE(IsProven(results[1].verification()));
  EXPECT_EQ(device.proven, (std::vector<std::string>{"a"}));
}

TEST(ResultBookTest, WhereTheFastestOfARoundDoesNotHoldTheNextIsProven) {
  CountingDevice device{.broken = "a", .rival_seconds = 1.1e-3};
  ResultBook book{v1::Toolchain()};
  const v1::Assignment round = RoundOfTwo();
  const std::vector<v1::MeasureResult> results =
      book.Make(round, {BuiltAs("a"), BuiltAs("b")}, device.MakeLane());
  EXPECT_EQ(results[0].status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_TRUE(IsProven(results[1].verification()));
  EXPECT_EQ(device.proven, (std::vector<std::string>{"a", "b"}));
}

TEST(ResultBookTest, EqualBinariesOfARoundAreProvenOnce) {
  CountingDevice device;
  ResultBook book{v1::Toolchain()};
  for (const v1::MeasureResult& result :
       book.Make(RoundOfTwo(), {BuiltAs("a"), BuiltAs("a")}, device.MakeLane()))
    EXPECT_TRUE(IsProven(result.verification()));
  EXPECT_EQ(device.proven, (std::vector<std::string>{"a"}));
}

// A proof is kept where a round shows the candidate to be slower.
TEST(ResultBookTest, AKnownProofCountsInARoundThatIsLost) {
  CountingDevice device{.rival_seconds = 1.1e-3};
  ResultBook book{v1::Toolchain()};
  v1::Assignment alone;
  alone.set_workload("w");
  EXPECT_TRUE(IsProven(book.Make(alone, {BuiltAs("b")}, device.MakeLane())[0].verification()));
  const v1::Assignment round = RoundOfTwo();
  for (const v1::MeasureResult& result : book.Make(round, {BuiltAs("a"), BuiltAs("b")}, device.MakeLane()))
    EXPECT_TRUE(IsProven(result.verification()));
  EXPECT_EQ(device.proven, (std::vector<std::string>{"b", "a"}));
}

TEST(ResultBookTest, WhoLeadsOwesAProofUntilItIsProven) {
  CountingDevice device;
  ResultBook book{v1::Toolchain()};
  v1::Assignment first;
  first.set_workload("w");
  v1::MeasureResult result = book.Measure(first, BuiltAs("a"), device.MakeLane());
  EXPECT_TRUE(ResultBook::OwesProof(0, result));
  EXPECT_TRUE(device.proven.empty());
  book.Prove(first, BuiltAs("a"), device.MakeLane(), &result);
  EXPECT_FALSE(ResultBook::OwesProof(0, result));
  EXPECT_TRUE(IsProven(book.Measure(first, BuiltAs("a"), device.MakeLane()).verification()));
  first.set_best_seconds(0.5e-3);
  EXPECT_FALSE(ResultBook::OwesProof(0.5e-3, book.Measure(first, BuiltAs("c"), device.MakeLane())));
  EXPECT_EQ(device.proven, (std::vector<std::string>{"a"}));
}

}  // namespace
}  // namespace mycc
