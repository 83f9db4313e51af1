// The rules for attention on GPUs: their points are lowered to roles, rings and fragments, and the machine's
// interpreter computes what the stages say, and finds no races.
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "codegen/passes/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/gpu_attention.h"
#include "tuner/space/rules/cuda/persistent_order.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

TEST(GpuStreamedTest, Warpgroups) { CheckLowered(Attention(200, 64, kNoMask), Hopper(), kWarpgroups, 3); }
TEST(GpuStreamedTest, TwoWarpgroups) {
  CheckLowered(Attention(150, 32, kNoMask), Hopper(), kWarpgroups, 2, "groups", "2");
}
TEST(GpuStreamedTest, PersistentBlocks) {
  CheckLowered(Attention(150, 32, kNoMask), Hopper(), kWarpgroups, 2, "persist", "1");
}
// Groups of warps would number the steps of tiles that they have not seen.
TEST(GpuStreamedTest, PingpongRefusesLoopsOfComputedLength) {
  EXPECT_THAT(LoweredWith(Attention(200, 64, kCausal), "persist(t7.a0+a1.0, 2)\npingpong(t7.a0+a1.0, 2)\n")
                  .status()
                  .message(),
              ::testing::HasSubstr("needs steps of one number; loop t7.r0.0.from has a computed length"));
}

// The copying role fetches the next tile's queries after the last product of keys has read this tile's. It
// counts the steps of a causal mask's tiles.
TEST(GpuStreamedTest, TheCopyingRoleFetchesQueries) {
  const auto lowered = LoweredWith(Attention(200, 64, kCausal), "persist(t7.a0+a1.0, 2)\n");
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = PrintLowered(*lowered);
  EXPECT_THAT(text, ::testing::ContainsRegex("if t7.r0.0.from.copy < 1\n *wait barrier.13. phase "
                                             "t7.a0.a1.0.round.copy - 1\n *copy in bulk, signals "
                                             "barrier.12."));
  EXPECT_THAT(text, ::testing::ContainsRegex("wait barrier.12. phase t7.a0.a1.0.round\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("arrive barrier[13] by 2 warpgroups releasing t0.s"));
  EXPECT_THAT(text, ::testing::ContainsRegex("let t7.r0.0.from.counted.copy = i64.t7.r0.0.from.count.copy"));
  EXPECT_THAT(text, ::testing::ContainsRegex("let t7.r0.0.from.counted = i64.t7.r0.0.from.count"));
}

// A block with one tile has nothing to wait for: neither the tile nor its steps are counted.
TEST(GpuStreamedTest, QueriesOfABlockWithOneTile) {
  const auto lowered = LoweredWith(Attention(200, 64, kCausal), "");
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = PrintLowered(*lowered);
  EXPECT_THAT(text,
              ::testing::ContainsRegex("if t7.r0.0.from.copy < 1\n *copy in bulk, signals barrier.12."));
  EXPECT_THAT(text, ::testing::HasSubstr("wait barrier[12] phase 0"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("barrier[13]")));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("count")));
}

TEST(GpuStreamedTest, TilesThereAndBack) {
  EXPECT_EQ(TimeInFixedOrder({4, 3, 2, 1}, 2), 5);
  EXPECT_EQ(TimeInFixedOrder({4, 1, 4, 1}, 2), 5);
  EXPECT_EQ(TimeInFixedOrder({4, 1, 1, 4, 4}, 2), 12);
  EXPECT_EQ(TimeWhenReady({4, 1, 1, 4, 4}, 2), 8);
}

// By default where tiles are short.
TEST(GpuStreamedTest, ShortTilesHavePersistentBlocks) {
  for (const auto& [keys, persists] : {std::pair{512, "1"}, std::pair{8192, "0"}}) {
    const Sketch sketch = GenerateSketches(CanonicalWorkload(Attention(keys, 64, kNoMask)), Hopper()).front();
    EXPECT_EQ(ValueOf(sketch, sketch.default_choice, "persist"), persists) << keys;
  }
}

// Tiles have different numbers of steps, which the block's roles count.
TEST(GpuStreamedTest, PersistentBlocksOfCausalMasks) {
  CheckLowered(Attention(200, 32, kCausal), Hopper(), kWarpgroups, 3, "persist", "1");
}
TEST(GpuStreamedTest, PersistentBlocksOfWindows) {
  CheckLowered(Attention(200, 32, kWindow), Hopper(), kWarpgroups, 3, "persist", "1");
}
// The first tile's queries have no keys at all; its queries come and go nevertheless.
TEST(GpuStreamedTest, PersistentBlocksOfTilesWithoutSteps) {
  CheckLowered(Attention(200, 32, "j + 130 <= i"), Hopper(), kWarpgroups, 3, "persist", "1");
}
// The mask leaves the same keys to all rows: the loop has fewer turns than it had, and the number is
// constant.
TEST(GpuStreamedTest, PersistentBlocksOfAConstantNumberOfSteps) {
  CheckLowered(Attention(200, 32, "j < 60"), Hopper(), kWarpgroups, 3, "persist", "1");
  CheckLowered(Attention(200, 32, "150 <= j && j <= i"), Hopper(), kWarpgroups, 3, "persist", "1");
}
// Keys run from the last to the first: the masked turns are first, and their number is known where tiles of
// keys hold whole tiles of rows.
TEST(GpuStreamedTest, CausalTilesOfEverySize) {
  for (const char* keys : {"64", "96", "112", "128"})
    CheckLowered(Attention(200, 32, kCausal), Hopper(), kWarpgroups, 2, "bn", keys);
}
TEST(GpuStreamedTest, CausalOfWarpgroups) {
  CheckLowered(Attention(200, 32, kCausal), Hopper(), kWarpgroups, 3);
}
TEST(GpuStreamedTest, WindowOfWarpgroups) {
  CheckLowered(Attention(200, 32, kWindow), Hopper(), kWarpgroups, 3);
}

// The keys in 9 pages, in the order that a table says.
std::string PagedDecoding(int page) {
  return absl::Substitute(
      kDecoding, absl::Substitute("k: f16[9,1,$0,64], v: f16[9,1,$0,64], table: i32[2,$1]", page, 256 / page),
      absl::Substitute("clamp(i64(table[b,j//$0]),0,8),h//4,j%$0", page), "s[b,h,i,j] * 0.125");
}

TEST(GpuStreamedTest, DecodingByWarpgroups) {
  CheckLowered(Decoding(""), Hopper(), "streamed_warp_specialized+merge", 3);
}
TEST(GpuStreamedTest, MaskedDecodingByWarpgroups) {
  CheckLowered(Decoding("j <= i + 120"), Hopper(), "streamed_warp_specialized+merge", 3);
}
// One pass that needs parts of the keys is one, too.
TEST(GpuStreamedTest, DecodingHasAStreamedSketch) {
  EXPECT_TRUE(HasStreamedSketch(CanonicalWorkload(Decoding("")), Hopper()));
  EXPECT_TRUE(HasStreamedSketch(CanonicalWorkload(Decoding("")), Ampere()));
}
TEST(GpuStreamedTest, DecodingByWarps) {
  CheckLowered(Decoding(""), Ampere(), "streamed_multistage+merge", 3);
}
TEST(GpuStreamedTest, MaskedDecodingByWarps) {
  CheckLowered(Decoding("j <= i + 120 && i + 120 < j + 90"), Ampere(), "streamed_multistage+merge", 3);
}

// Parts of 192 and of 64 of 250 keys.
TEST(GpuStreamedTest, DecodingOfUnevenParts) {
  const std::string text = absl::StrReplaceAll(Decoding("j <= i + 245"), {{"256", "250"}});
  CheckLowered(text, Hopper(), "streamed_warp_specialized+merge", 3);
  CheckLowered(text, Ampere(), "streamed_multistage+merge", 3);
}
TEST(GpuStreamedTest, PagedDecodingByWarpgroups) {
  CheckLowered(PagedDecoding(64), Hopper(), "streamed_warp_specialized+merge", 3);
}
TEST(GpuStreamedTest, PagedDecodingByWarps) {
  CheckLowered(PagedDecoding(16), Ampere(), "streamed_multistage+merge", 3);
}
// A tile of the copy engine would reach over several pages.
TEST(GpuStreamedTest, SmallPagesAreCopiedByThreads) {
  for (const Sketch& sketch : GenerateSketches(CanonicalWorkload(PagedDecoding(16)), Hopper()))
    EXPECT_EQ(sketch.name, "streamed_multistage+merge");
}

// The log-sum-exp is merged by a launch of its own, wherever it stands among the outputs.
TEST(GpuStreamedTest, DecodingWithLogSumExp) {
  for (const char* outputs : {"(o: f16[2,4,3,64], z: f32[2,4,3])", "(z: f32[2,4,3], o: f16[2,4,3,64])"}) {
    for (const char* value : {"log(l[b,h,i]) + m[b,h,i]", "m[b,h,i] * 2.0"}) {
      const std::string text = absl::StrReplaceAll(
          Decoding(""),
          {{"(o: f16[2,4,3,64])", outputs}, {"\n}", absl::StrCat("\n  z[b,h,i] = ", value, "\n}")}});
      CheckLowered(text, Hopper(), "streamed_warp_specialized+merge+merge", 2);
      CheckLowered(text, Ampere(), "streamed_multistage+merge+merge", 2);
    }
  }
}

TEST(GpuStreamedTest, LogSumExpAsTheFirstOutput) {
  const std::string text = absl::StrReplaceAll(Attention(200, 64, kCausal),
                                               {{"(o: f16[2,200,64])", "(z: f32[2,200], o: f16[2,200,64])"},
                                                {"\n}", "\n  z[h,i] = log(l[h,i]) + m[h,i]\n}"}});
  CheckLowered(text, Hopper(), "elementwise+streamed_warp_specialized", 2);
  CheckLowered(text, Ampere(), "elementwise+streamed_multistage", 2);
}

// The weighted sum has the shape of the scores.
TEST(GpuStreamedTest, DecodingOfAsManyKeysAsValues) {
  CheckLowered(absl::StrReplaceAll(Decoding(""), {{"256", "64"}}), Hopper(),
               "streamed_warp_specialized+merge", 2);
}

// The sum's axes are in the order of the result's, so that the division stays in its kernel.
TEST(GpuStreamedTest, OutputsInAnotherLayout) {
  const std::string text =
      absl::StrReplaceAll(Attention(150, 32, kNoMask),
                          {{"(o: f16[2,200,32])", "(o: f16[200,2,32])"}, {"o[h,i,d] =", "o[i,h,d] ="}});
  CheckLowered(text, Hopper(), kWarpgroups, 2);
  CheckLowered(text, Ampere(), kWarps, 2);
}

// Parts of the keys are made of the whole workload, whatever else it computes.
TEST(GpuStreamedTest, FewQueriesBesideAnArgmax) {
  const Workload workload = CanonicalWorkload(
      R"(workload w(q: f16[8,1,64], k: f16[8,4096,64], v: f16[8,4096,64], g: f32[4,1000]) -> (o: f16[8,1,64], best: i32[4]) {
  s[h,i,j]: f32[8,1,4096] = sum[d:64](f32(q[h,i,d]) * f32(k[h,j,d]))
  m[h,i]: f32[8,1] = max[j:4096](s[h,i,j])
  e[h,i,j]: f32[8,1,4096] = exp(s[h,i,j] - m[h,i])
  l[h,i]: f32[8,1] = sum[j:4096](e[h,i,j])
  t[h,i,d]: f32[8,1,64] = sum[j:4096](f32(f16(e[h,i,j])) * f32(v[h,j,d]))
  o[h,i,d] = f16(t[h,i,d] / l[h,i])
  best[i] = argmax[j:1000](g[i,j])
})");
  for (const Target& target : {Hopper(), Ampere()}) {
    const std::string name = GenerateSketches(workload, target).front().name;
    EXPECT_TRUE(IsStreamedSketch(name) && absl::StrContains(name, "merge")) << name;
  }
}

// Rows of one thread block: what it holds in registers and in shared memory is its own.
TEST(GpuStreamedTest, OneBlock) {
  const std::string text =
      absl::StrReplaceAll(Attention(128, 64, kNoMask), {{"[2,200", "[1,64"}, {"h//2", "h"}});
  CheckLowered(text, Hopper(), kWarpgroups, 3);
  CheckLowered(text, Hopper(), kWarps, 3);
}

// Loops of a few turns that begin late: no copy runs ahead beyond the last keys.
TEST(GpuStreamedTest, MaskOfTheFirstKeys) {
  CheckLowered(Attention(150, 32, "100 <= j"), Ampere(), kWarps, 4);
  CheckLowered(Attention(150, 32, "100 <= j && j <= i"), Ampere(), kWarps, 4);
  CheckLowered(Attention(150, 32, "150 <= j"), Ampere(), kWarps, 2);
}

TEST(GpuStreamedTest, DepthsThatInstructionsDoNotDivide) {
  CheckLowered(Attention(150, 40, kNoMask), Hopper(), kWarpgroups, 2);
  CheckLowered(Attention(150, 40, kNoMask), Ampere(), kWarps, 2);
}

TEST(GpuStreamedTest, DecodingWithAGuardedMaximum) {
  const std::string text = absl::StrReplaceAll(Decoding("j < i * 90"),
                                               {{"- m[b,h,i]", "- select(m[b,h,i] == -inf, 0.0, m[b,h,i])"}});
  CheckLowered(text, Hopper(), "streamed_warp_specialized+merge", 2);
}

// The copy engine fetches no zeros where keys end in the middle of a tensor.
TEST(GpuStreamedTest, KeysOfALongerTensor) {
  const std::string text = absl::StrReplaceAll(Attention(160, 64, kNoMask), {{"f16[1,160,", "f16[1,256,"}});
  CheckLowered(text, Hopper(), kWarpgroups, 3);
  EXPECT_THAT(GenerateSketches(CanonicalWorkload(absl::StrReplaceAll(text, {{"160", "200"}})), Hopper()),
              ::testing::Each(::testing::Field(&Sketch::name, kWarps)));
}

// A product with the result of attention adds up its values, and is no merge of parts.
TEST(GpuStreamedTest, ProductsOfTheResultAreNoMerge) {
  const Workload workload = CanonicalWorkload(
      R"(workload projected(q: f16[2,200,64], k: f16[2,200,64], v: f16[2,200,64], w: f32[64,64]) -> (y: f32[2,200,64]) {
  s[h,i,j]: f32[2,200,200] = sum[d:64](f32(q[h,i,d]) * f32(k[h,j,d]))
  m[h,i]: f32[2,200] = max[j:200](s[h,i,j])
  e[h,i,j]: f32[2,200,200] = exp(s[h,i,j] - m[h,i])
  t[h,i,d]: f32[2,200,64] = sum[j:200](f32(f16(e[h,i,j])) * f32(v[h,j,d]))
  y[h,i,n] = sum[d:64](t[h,i,d] * w[d,n])
})");
  const std::vector<Sketch> sketches = GenerateSketches(workload, Hopper());
  EXPECT_THAT(sketches.front().name, ::testing::HasSubstr("streamed"));
  for (const Sketch& sketch : sketches)
    EXPECT_THAT(sketch.name, ::testing::Not(::testing::HasSubstr("merge")));
}

TEST(GpuStreamedTest, Warps) { CheckLowered(Attention(150, 32, kNoMask), Ampere(), kWarps, 3); }
TEST(GpuStreamedTest, CausalOfWarps) { CheckLowered(Attention(200, 48, kCausal), Ampere(), kWarps, 3); }
TEST(GpuStreamedTest, WindowOfWarps) { CheckLowered(Attention(200, 32, kWindow), Ampere(), kWarps, 3); }

}  // namespace
}  // namespace mycc
