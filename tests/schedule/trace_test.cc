// Traces as text: round trips, and refusals of malformed text.
#include "codegen/schedule/trace.h"

#include <random>

#include "codegen/schedule/trace_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kTrace[] =
    "v1\n"
    "sketch contraction t2.mr=6 t2.kc=-1\n"
    "split(t2.a0+a1, [2, 6])\n"
    "reorder([t2.a0.0, t2.r0])\n"
    "pack(t1.r, [1/8, 0, 1%8])\n"
    "rfactor(t3.r0, 16)\n";

TEST(TraceTest, PrintsWhatItParsed) {
  const absl::StatusOr<Trace> trace = ParseTrace(kTrace);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->sketch, "contraction");
  EXPECT_EQ(trace->decisions[1], std::make_pair(std::string("t2.kc"), int64_t{-1}));
  EXPECT_EQ(PrintTrace(*trace), kTrace);
}

// Logs, files and workers of other versions have both names.
TEST(TraceTest, FormerNamesAreReadAndCurrentOnesPrinted) {
  const std::string former =
      "v1\nsketch row cluster=2 bypass=1\nunlike_signs(t2, t0)\nphases(t2)\nstage(t2, t0, t2.r0.0, shared)\n"
      "persist(t2.a0, 4)\nstream(t2.a0, 4, 1, 2)\nalternate(t2.a0, 2)\nreside(t2.a0, 2)\njoin(t2.a0, 2)\n"
      "cluster(t2.a1)\nelect(t2.a2, 32)\nbypass(t2.a0)\n";
  const std::string current =
      "v1\nsketch row cluster=2 bypass=1\nflip_sign(t2, t0)\nsplit_stride_phases(t2)\n"
      "stage_shared(t2, t0, t2.r0.0, shared)\npersist(t2.a0, 4)\nstream_k(t2.a0, 4, 1, 2)\n"
      "pingpong(t2.a0, 2)\nmin_blocks_per_sm(t2.a0, 2)\ncluster_reduce(t2.a0, 2)\n"
      "multicast_cluster(t2.a1)\nlane_predicate(t2.a2, 32)\nnontemporal(t2.a0)\n";
  const absl::StatusOr<Trace> trace = ParseTrace(former);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(PrintTrace(*trace), current);
  EXPECT_EQ(*trace, *ParseTrace(current));
  EXPECT_EQ(CurrentTrace(former), current);
  EXPECT_EQ(StoredTrace(current), former);
  EXPECT_EQ(StoredTrace(former), former);
  // Words elsewhere in a line, and texts that are no trace, stay.
  for (const std::string& text :
       {std::string(), std::string("stream"), std::string("stage # stage("),
        std::string("v1\nbind(join, stage)\n# join(t2.a0, 2)"), std::string("\n(\n stream_ (")})
    EXPECT_EQ(CurrentTrace(text), text);
}

TEST(TraceTest, CommentsAndSpacesMeanNothing) {
  const absl::StatusOr<Trace> trace =
      ParseTrace("# by hand\n v1 # version\n\n  split( t2.a0 , [ 4 ] )  # tile\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(PrintTrace(*trace), "v1\nsplit(t2.a0, [4])\n");
}

struct Malformed {
  const char* text;
  const char* message;
};
class MalformedTraceTest : public ::testing::TestWithParam<Malformed> {};
TEST_P(MalformedTraceTest, SaysWhereAndWhat) {
  const absl::Status status = ParseTrace(GetParam().text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}
constexpr Malformed kMalformed[] = {
    {"", "1:1: the trace is empty; expected v1"},
    {"v2\n", "expected v1, found 'v2'"},
    {"v1\nslpit(a, [1])", "2:6: unknown primitive slpit; expected one of split"},
    {"v1\nreodrer([a])", "tensorize_tile (did you mean reorder?)"},
    {"v1\nsplit(a)", "expected split(loop, [inner factors])"},
    {"v1\nsplit(a, [1, x])", "expected an integer, found 'x'"},
    {"v1\nsplit(a, [1) ", "expected ']'"},
    {"v1\nsplit(a, [1]) extra", "expected split(loop, [inner factors])"},
    {"v1\nsplit(a, [99999999999999999999])", "expected an integer"},
    {"v1\nsketch c mr=", "expected a name or a number"},
};
INSTANTIATE_TEST_SUITE_P(All, MalformedTraceTest, ::testing::ValuesIn(kMalformed));

// Mutated texts either parse to something that round-trips, or are refused; nothing crashes.
TEST(TraceTest, MutatedTextsRoundTripOrAreRefused) {
  std::mt19937 rng(3);
  const std::string alphabet = "v1split(),[]t2.ar0=%/+- \n#";
  for (int round = 0; round < 4000; ++round) {
    std::string text = kTrace;
    for (int edits = 1 + static_cast<int>(rng() % 4); edits > 0; --edits) {
      const size_t at = rng() % text.size();
      if (rng() % 2)
        text[at] = alphabet[rng() % alphabet.size()];
      else
        text.erase(at, 1 + rng() % 3);
    }
    const absl::StatusOr<Trace> trace = ParseTrace(text);
    if (!trace.ok()) continue;
    const absl::StatusOr<Trace> again = ParseTrace(PrintTrace(*trace));
    ASSERT_TRUE(again.ok()) << text;
    EXPECT_TRUE(*again == *trace) << text;
  }
}

}  // namespace
}  // namespace mycc
