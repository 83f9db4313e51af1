// Masks by lengths and biases of attention on GPUs: turns that a length leaves out, and biases in registers
// or through the ring of keys and values.
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/tuner/gpu_attention.h"

namespace mycc {
namespace {

// The number of keys of each head is data: all roles count the same turns, none where it is 0.
std::string Lengths(const std::string& mask) {
  return absl::StrReplaceAll(Attention(200, 32, mask), {{") -> (o", ", n: i32[2]) -> (o"},
                                                        {"- m[h,i]", "- select(m[h,i] == -inf, 0.0, m[h,i])"},
                                                        {"/ l[h,i]", "/ max(l[h,i], 1.0e-30)"}});
}
TEST(GpuLengthsTest, LengthsOfWarpgroups) {
  CheckLowered(Lengths("j < i64(n[h])"), Hopper(), kWarpgroups, 3, "skip", "1");
  CheckLowered(Lengths("j < i64(n[h])"), Hopper(), kWarpgroups, 3, "persist", "1");
  CheckLowered(Lengths("j < i64(n[h]) && j <= i"), Hopper(), kWarpgroups, 2, "skip", "1");
  CheckLowered(Lengths("i64(n[h]) <= j"), Hopper(), kWarpgroups, 2, "skip", "1");
}
TEST(GpuLengthsTest, LengthsOfWarps) {
  CheckLowered(Lengths("j < i64(n[h])"), Ampere(), kWarps, 3, "skip", "1");
}
// Rows of a block with lengths of their own have all blocks of keys.
TEST(GpuLengthsTest, LengthsOfRows) {
  const std::string text = absl::StrReplaceAll(Lengths("j < i64(n[h,i])"), {{"n: i32[2]", "n: i32[2,200]"}});
  CheckLowered(text, Hopper(), kWarpgroups, 2, "skip", "0");
}
// Fewer keys than none, and more than all.
TEST(GpuLengthsTest, LengthsBeyondTheKeys) {
  CheckLowered(Lengths("j < i64(n[h]) * 60 + 100"), Hopper(), kWarpgroups, 4, "skip", "1");
}

// Parts of the keys beyond a length have no turns.
TEST(GpuLengthsTest, Decoding) {
  const std::string text = absl::StrReplaceAll(Decoding("j < i64(n[b])"),
                                               {{") -> (o", ", n: i32[2]) -> (o"},
                                                {"- m[b,h,i]", "- select(m[b,h,i] == -inf, 0.0, m[b,h,i])"},
                                                {"/ l[b,h,i]", "/ max(l[b,h,i], 1.0e-30)"}});
  CheckLowered(text, Hopper(), "streamed_warp_specialized+merge", 3, "skip", "1");
  CheckLowered(text, Ampere(), "streamed_multistage+merge", 3, "skip", "1");
}
// A number for each pair, of f16, beside a mask: fetched as a tile of registers.
TEST(GpuBiasesTest, BiasTensors) {
  const std::string text =
      absl::StrReplaceAll(Attention(200, 64, kCausal),
                          {{"0.125,", "0.125 + f32(r[h,i,j]),"}, {") -> (o", ", r: f16[2,200,200]) -> (o"}});
  CheckLowered(text, Hopper(), kWarpgroups, 3, "bias", "0");
  CheckLowered(text, Ampere(), kWarps, 3);
}

// The same through the ring of keys and values: with a mask, of f32, with heads between rows and keys, and
// two.
TEST(GpuBiasesTest, BiasTensorsInTheRing) {
  const auto text = [](const std::string& mask, const std::string& bias, const std::string& tensors) {
    return absl::StrReplaceAll(
        Attention(200, 64, mask),
        {{"0.125", absl::StrCat("0.125 + ", bias)}, {") -> (o", absl::StrCat(", ", tensors, ") -> (o")}});
  };
  const std::string plain = text(kNoMask, "f32(r[h,i,j])", "r: f16[2,200,200]");
  CheckLowered(plain, Hopper(), kWarpgroups, 3, "bias", "1");
  CheckLowered(plain, Hopper(), kWarpgroups, 2, "persist", "1");
  CheckLowered(text(kCausal, "f32(r[h,i,j])", "r: f16[2,200,200]"), Hopper(), kWarpgroups, 2, "bias", "1");
  CheckLowered(text(kWindow, "r[i,h,j]", "r: f32[200,2,200]"), Hopper(), kWarpgroups, 2, "bias", "1");
  CheckLowered(text("x[i,j]", "f32(r[h//2,i,j])", "x: bool[200,208], r: f16[1,200,200]"), Hopper(),
               kWarpgroups, 2, "bias", "1");
}

// A mask for each pair, beside a factor that its tile leaves to exponents.
TEST(GpuBiasesTest, MaskTensors) {
  const std::string text =
      absl::StrReplaceAll(Attention(192, 64, "x[i,j]"), {{") -> (o", ", x: bool[200,192]) -> (o"}});
  CheckLowered(text, Hopper(), kWarpgroups, 2, "bias", "1");
  CheckLowered(text, Hopper(), kWarpgroups, 1, "bias", "0");
}

// The threads of a warpgroup have read a tile of biases before it is released; warpgroups do not wait for
// each other. The copying role fetches the tile between those of keys and values.
TEST(GpuBiasesTest, TilesOfBiasesHaveBarriersOfTheirOwn) {
  const auto lowered = LoweredWith(
      absl::StrReplaceAll(Attention(192, 64, kNoMask),
                          {{"0.125", "0.125 + f32(r[h,i,j])"}, {") -> (o", ", r: f16[2,200,192]) -> (o"}}),
      "");
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  std::string order;
  for (const absl::string_view line : absl::StrSplit(PrintLowered(*lowered), '\n')) {
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
    for (const char* word :
         {"role ", "for t8.r0", "wait ", "arrive ", "mma ", "take ", "pass ", "load t3", "copy "}) {
      if (absl::StartsWith(text, word)) absl::StrAppend(&order, text, "\n");
    }
  }
  EXPECT_TRUE(MatchesGolden("passes/biases_in_the_ring", order));
}

// Rows of no whole 16 bytes.
TEST(GpuBiasesTest, BiasTensorsThatTheCopyEngineCannotFetch) {
  const std::string text =
      absl::StrReplaceAll(Attention(200, 64, kNoMask),
                          {{"0.125", "0.125 + f32(r[h,i,j])"}, {") -> (o", ", r: f16[2,200,204]) -> (o"}});
  const Sketch sketch = GenerateSketches(CanonicalWorkload(text), Hopper()).front();
  EXPECT_EQ(ValueOf(sketch, sketch.default_choice, "bias"), "0");
}

}  // namespace
}  // namespace mycc
