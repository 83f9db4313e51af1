// Contractions of every pair of types by every CPU's instructions: sizes that leave rows, columns and depth
// over, operands in either order of their dimensions, constant or not.
#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "codegen/llvm/emit.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/sketch_points.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using testing::HasSubstr;
using testing::Not;

// Sums of bf16 products in f32, in another order.
constexpr double kTolerance = 1e-4;

constexpr const char* kTargets[] = {
    "mcpu=x86-64",         "mcpu=x86-64-v2",
    "mcpu=ivybridge",      "mcpu=haswell",
    "mcpu=znver2",         "mcpu=alderlake",
    "mcpu=skylake-avx512", "mcpu=cascadelake",
    "mcpu=znver4",         "mcpu=sapphirerapids features=+amx-bf16,+amx-int8",
};

Target TargetOf(const std::string& cpu) {
  return *ParseTarget(absl::StrCat("v1 cpu ", cpu, " l1d=32K l2=512K threads=2"));
}

struct Types {
  const char *a, *b, *sum;
};
constexpr Types kTypes[] = {{"f32", "f32", "f32"}, {"f64", "f64", "f64"}, {"bf16", "bf16", "f32"},
                            {"f16", "f16", "f32"}, {"i8", "i8", "i32"},   {"u8", "i8", "i32"},
                            {"i8", "u8", "i32"},   {"u8", "u8", "i32"}};

std::string Gemm(const Types& t, int m, int n, int k, const char* a_index, const char* b_index,
                 const char* constant) {
  const bool a_turned = std::string(a_index) == "k,i", b_turned = std::string(b_index) == "j,k";
  return absl::StrCat("workload w(a: ", t.a, "[",
                      a_turned ? absl::StrCat(k, ",", m) : absl::StrCat(m, ",", k), "], b: ", constant, t.b,
                      "[", b_turned ? absl::StrCat(n, ",", k) : absl::StrCat(k, ",", n), "]) -> (c: ", t.sum,
                      "[", m, ",", n, "]) {\n  c[i,j] = sum[k:", k, "](", t.sum, "(a[", a_index, "]) * ",
                      t.sum, "(b[", b_index, "]))\n}");
}

// The default and random points of every sketch.
void CheckPointsOf(const std::string& text, const Target& target, int random_points, uint32_t seed) {
  const Workload canonical = CanonicalWorkload(text);
  std::mt19937 random(seed);
  for (const Sketch& sketch : GenerateSketches(canonical, target)) {
    Choice choice = sketch.default_choice;
    for (int point = 0; point <= random_points; ++point) {
      if (sketch.space.Legal(choice)) {
        const absl::Status status = CheckSketchPoint(canonical, target, sketch, choice, kTolerance);
        EXPECT_TRUE(status.ok()) << PrintTarget(target) << "\n" << text << "\n" << status.message();
      }
      for (size_t d = 0; d < choice.size(); ++d)
        choice[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
    }
  }
}

class ProductsTest : public testing::TestWithParam<const char*> {
 protected:
  // All combinations of a target, types and a shape take minutes to compile. Any two of the three are tested
  // together: with each type, a target has every `period`th shape, and begins elsewhere with the next type.
  bool IsTurnOf(size_t type, size_t shape, size_t period) const {
    const size_t target =
        std::find(std::begin(kTargets), std::end(kTargets), GetParam()) - std::begin(kTargets);
    return (target + type + shape) % period == 0;
  }
};

TEST_P(ProductsTest, ComputeTheSum) {
  constexpr std::tuple<int, int, int> kShapes[] = {{37, 45, 77}, {8, 16, 64}, {33, 7, 130}, {1, 40, 66}};
  const Target target = TargetOf(GetParam());
  uint32_t seed = 1;
  for (size_t t = 0; t < std::size(kTypes); ++t) {
    for (size_t s = 0; s < std::size(kShapes); ++s, ++seed) {
      if (!IsTurnOf(t, s, 2)) continue;
      const auto& [m, n, k] = kShapes[s];
      const bool turned = seed % 3 == 0;
      CheckPointsOf(Gemm(kTypes[t], m, n, k, turned ? "k,i" : "i,k", seed % 5 % 2 ? "k,j" : "j,k",
                         seed % 5 < 3 ? "const " : ""),
                    target, 2, seed);
    }
  }
}

// Images of 7 rows.
std::string Convolution(const Types& types, int width, int channels) {
  const std::string shape = absl::StrCat("[1,7,", width, ",20]");
  return absl::StrCat("workload w(x: ", types.a, "[1,9,", width + 2, ",", channels, "], w: const ", types.b,
                      "[20,", channels, ",3,3], b: const ", types.sum, "[20]) -> (y: ", types.sum, shape,
                      ") {\n  a[n,i,j,k]: ", types.sum, shape, " = sum[r:3, s:3, c:", channels, "](",
                      types.sum, "(x[n,i+r,j+s,c]) * ", types.sum,
                      "(w[k,c,r,s]))\n  y[n,i,j,k] = max(a[n,i,j,k] + b[k], ", types.sum, "(0))\n}");
}

// Few rows and columns, whose depth is cut into parts.
TEST_P(ProductsTest, AddUpPartsOfTheDepth) {
  const Target target = TargetOf(GetParam());
  for (size_t t = 0; t < std::size(kTypes); ++t) {
    const auto& [m, n, k] = IsTurnOf(t, 0, 2) ? std::tuple{16, 16, 600} : std::tuple{5, 9, 371};
    CheckPointsOf(Gemm(kTypes[t], m, n, k, "i,k", IsTurnOf(t, 0, 4) || IsTurnOf(t, 1, 4) ? "k,j" : "j,k",
                       IsTurnOf(t, 0, 3) ? "" : "const "),
                  target, 3, static_cast<uint32_t>(t + 1));
  }
}

TEST_P(ProductsTest, Convolve) {
  for (const Types& types : kTypes) CheckPointsOf(Convolution(types, 7, 36), TargetOf(GetParam()), 1, 7);
}

// Groups that a pixel does not fill, with and without a padded image that may be read beyond its end.
TEST_P(ProductsTest, ConvolveFewChannels) {
  const Target target = TargetOf(GetParam());
  for (size_t t = 0; t < std::size(kTypes); ++t) {
    const Types& types = kTypes[t];
    const std::string a = types.a, zero = absl::StrCat(a, "(0)");
    const int channels = IsTurnOf(t, 0, 2) ? 3 : 5;
    const std::string pad =
        absl::StrCat("  p[i,j,c]: ", a, "[10,9,", channels,
                     "] = select(1 <= i && i < 9 && 1 <= j && j < 8, x[i-1,j-1,c], ", zero, ")\n");
    const std::string sum = absl::StrCat("  y[i,j,k] = sum[r:3, s:3, c:", channels, "](", types.sum,
                                         "(p[i+r,j+s,c]) * ", types.sum, "(w[k,r,s,c]))\n}");
    const std::string result =
        absl::StrCat(", w: const ", types.b, "[20,3,3,", channels, "]) -> (y: ", types.sum, "[8,7,20]) {\n");
    const std::string text = IsTurnOf(t, 0, 4) || IsTurnOf(t, 1, 4)
                                 ? absl::StrCat("workload w(x: ", a, "[8,7,", channels, "]", result, pad, sum)
                                 : absl::StrCat("workload w(p: ", a, "[10,9,", channels, "]", result, sum);
    CheckPointsOf(text, target, 1, 3);
  }
}

// A last row and a last column meet alone: the tensor's last elements are a column there, whose last group is
// partial. So is the last pixel of an image with one channel, next to its border.
TEST_P(ProductsTest, ReadNoGroupBeyondATensor) {
  const Target target = TargetOf(GetParam());
  for (const Types& types : {Types{"u8", "i8", "i32"}, Types{"i8", "u8", "i32"}, Types{"i8", "i8", "i32"},
                             Types{"bf16", "bf16", "f32"}}) {
    for (const int depth : {33, 95})
      CheckPointsOf(Gemm(types, 33, 33, depth, "i,k", "j,k", /*constant=*/""), target, 1, 4);
    const std::string text = absl::Substitute(
        R"(workload w(x: $0[1,8,14,1], w: $1[16,1,3,3]) -> (y: $2[1,8,14,16]) {
  p[n,i,j,c]: $0[1,10,16,1] = select(1 <= i && i < 9 && 1 <= j && j < 15, x[n,i-1,j-1,c], $0(0))
  y[n,i,j,k] = sum[c:1, r:3, s:3]($2(p[n,i+r,j+s,c]) * $2(w[k,c,r,s]))
})",
        types.a, types.b, types.sum);
    CheckPointsOf(text, target, 1, 4);
  }
}

// Panels of what no one knows ahead: whole vectors and turned tiles, and what is left over of both.
TEST_P(ProductsTest, PackAtRunTime) {
  const Target target = TargetOf(GetParam());
  for (size_t t = 0; t < std::size(kTypes); ++t) {
    const char* const order = IsTurnOf(t, 0, 2) ? "k,j" : "j,k";
    CheckPointsOf(Gemm(kTypes[t], 21, 83, 141, "i,k", order, /*constant=*/""), target, 2, 5);
  }
}

// Integers whose products and their sums are the largest: of 16 bits they would saturate.
TEST_P(ProductsTest, AreExactAtTheExtremes) {
  const Target target = TargetOf(GetParam());
  const auto extremes = [](const std::string& type, const std::string& of, const std::string& index) {
    const bool is_signed = type == "i8";
    return absl::StrCat(type, "(select(", of, "[", index, "] < ", type,
                        is_signed ? "(0), -128, 127))" : "(2), 0, 255))");
  };
  for (const auto& [a, b] : {std::pair{"i8", "i8"}, {"u8", "u8"}, {"i8", "u8"}, {"u8", "i8"}}) {
    CheckPointsOf(
        absl::StrCat("workload w(a: ", a, "[19,70], b: const ", b, "[33,70]) -> (c: i32[19,33]) {\n",
                     "  x[i,k]: ", a, "[19,70] = ", extremes(a, "a", "i,k"), "\n  y[j,k]: ", b, "[33,70] = ",
                     extremes(b, "b", "j,k"), "\n  c[i,j] = sum[k:70](i32(x[i,k]) * i32(y[j,k]))\n}"),
        target, 2, 3);
  }
}

// Values of decisions of the contraction.
using Pins = std::vector<std::pair<std::string, int64_t>>;

// The first decision of that name; null: there is none.
const Decision* DecisionOf(const Sketch& sketch, const std::string& name) {
  const auto& decisions = sketch.space.decisions;
  const auto found = std::ranges::find_if(
      decisions, [&](const Decision& decision) { return decision.name.ends_with(absl::StrCat(".", name)); });
  return found == decisions.end() ? nullptr : &*found;
}

// Sets what is pinned; false where a decision has not that choice.
bool Pin(const Pins& pins, const Sketch& sketch, Choice* choice) {
  for (const auto& [name, value] : pins) {
    const Decision* decision = DecisionOf(sketch, name);
    if (decision == nullptr) return false;
    const auto found = std::ranges::find(decision->choices, value);
    if (found == decision->choices.end()) return false;
    (*choice)[decision - sketch.space.decisions.data()] = static_cast<int>(found - decision->choices.begin());
  }
  return true;
}

// How many sketches of the workload have legal points with what is pinned. One of each is checked.
int CheckPointsWith(const Pins& pins, const std::string& text, const Target& target) {
  const Workload canonical = CanonicalWorkload(text);
  int checked = 0;
  for (const Sketch& sketch : GenerateSketches(canonical, target)) {
    std::mt19937 random(3);
    Choice choice = sketch.default_choice;
    for (int tries = 0; tries < 2000 && Pin(pins, sketch, &choice); ++tries) {
      if (sketch.space.Legal(choice)) {
        const absl::Status status = CheckSketchPoint(canonical, target, sketch, choice, kTolerance);
        EXPECT_TRUE(status.ok()) << PrintTarget(target) << "\n" << text << "\n" << status.message();
        ++checked;
        break;
      }
      for (size_t d = 0; d < choice.size(); ++d)
        choice[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
    }
  }
  return checked;
}

// Uneven padding, more columns than a register tile has, a stride along them.
TEST_P(ProductsTest, ConvolveWithoutZeros) {
  const Target target = TargetOf(GetParam());
  for (const Types& types : {Types{"f32", "f32", "f32"}, Types{"bf16", "bf16", "f32"},
                             Types{"u8", "i8", "i32"}, Types{"i8", "u8", "i32"}}) {
    const bool is_float = std::string(types.sum) == "f32";
    const auto widened = [&](const char* type, const std::string& read) {
      return std::string(type) == types.sum ? read : absl::StrCat(types.sum, "(", read, ")");
    };
    const std::string text =
        absl::StrCat("workload w(x: ", types.a, "[1,5,19,12], w: const ", types.b,
                     "[20,12,3,4]) -> (y: ", types.sum, "[1,5,11,20]) {\n  p[n,i,j,c]: ", types.a,
                     "[1,7,24,12] = select(1 <= i && i < 6 && 2 <= j && j < 21, x[n,i-1,j-2,c], ",
                     is_float ? "0.0" : "0", ")\n  y[n,i,j,k] = sum[r:3, s:4, c:12](",
                     widened(types.a, "p[n,i+r,j*2+s,c]"), " * ", widened(types.b, "w[k,c,r,s]"), ")\n}");
    EXPECT_GE(CheckPointsWith({{"skip", 1}}, text, target) + CheckPointsWith({{"skip", 2}}, text, target), 1)
        << PrintTarget(target) << "\n"
        << text;
  }
}

// Images of 5 pixels a line with a border.
std::string PaddedConvolution(const Types& types, int images, int height, int channels, int columns,
                              const char* constant) {
  const bool is_widened = std::string(types.a) != types.sum;
  return absl::Substitute(
      R"(workload w(x: $0[$9,$2,5,$3], w: $8$0[$4,3,3,$3]) -> (y: $1[$9,$2,5,$4]) {
  p[n,i,j,c]: $0[$9,$5,7,$3] = select(1 <= i && i < $5 - 1 && 1 <= j && j < 6, x[n,i-1,j-1,c], $0(0))
  y[n,i,j,k] = sum[r:3, s:3, c:$3]($6p[n,i+r,j+s,c]$7 * $6w[k,r,s,c]$7)
})",
      types.a, types.sum, height, channels, columns, height + 2,
      is_widened ? absl::StrCat(types.sum, "(") : "", is_widened ? ")" : "", constant, images);
}

// Bands of lines, one or two in a tile, and of columns; the last band is smaller than the others, or there
// are fewer bands than were asked for.
TEST_P(ProductsTest, ConvolveInBands) {
  const Target target = TargetOf(GetParam());
  for (const Types& types :
       {Types{"f32", "f32", "f32"}, Types{"bf16", "bf16", "f32"}, Types{"i8", "i8", "i32"}}) {
    const std::string lines = PaddedConvolution(types, 3, 5, 12, 36, "const "),
                      columns = PaddedConvolution(types, 1, 3, 12, 150, "const ");
    for (const int64_t bands : {1, 2, 4})
      EXPECT_GE(CheckPointsWith({{"bands", bands}}, lines, target), 1) << lines;
    EXPECT_GE(CheckPointsWith({{"bands", 2}, {"block_order", 2}, {"nv", 1}, {"nt", 2}}, columns, target), 1)
        << columns;
  }
}

TEST(ProductInstructionsTest, BandsOfTilesWithSeveralLines) {
  const std::string text = PaddedConvolution({"bf16", "bf16", "f32"}, 1, 9, 40, 36, "const ");
  for (const int threads : {1, 2}) {
    const Target target = *ParseTarget(
        absl::StrCat("v1 cpu mcpu=sapphirerapids features=+amx-bf16 l1d=48K l2=2M threads=", threads));
    EXPECT_GE(CheckPointsWith({{"bands", 2}, {"lines", 2}}, text, target), 1) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ProductsTest, testing::ValuesIn(kTargets));

std::string Assembly(const std::string& text, const std::string& cpu) {
  const Target target = TargetOf(cpu);
  const Workload canonical = CanonicalWorkload(text);
  const Sketch sketch = GenerateSketches(canonical, target).front();
  const auto trace = sketch.instantiate(sketch.default_choice);
  EXPECT_TRUE(trace.ok()) << trace.status();
  const auto schedule = Replay(canonical, target, *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const auto lowered = Lower(schedule->function(), target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return *EmitModule({EmitUnit{"k", *lowered}}, target, EmitKind::kAssembly);
}

// A decision's number in the sketch; none has another name.
size_t DecisionNamed(const Sketch& sketch, const std::string& name) {
  for (size_t d = 0; d < sketch.space.decisions.size(); ++d) {
    if (sketch.space.decisions[d].name.ends_with(absl::StrCat(".", name))) return d;
  }
  ADD_FAILURE() << "no decision is called " << name;
  return 0;
}

// The rest of a depth is no work for vectors: in equal steps, or as a copy that zeros fill up.
TEST(ProductInstructionsTest, TileRegistersMultiplyTheRestOfTheDepth) {
  const std::string cpu = kTargets[std::size(kTargets) - 1];
  for (const Types& types : {Types{"u8", "i8", "i32"}, Types{"bf16", "bf16", "f32"}}) {
    for (const int depth : {16, 24, 96, 100, 160, 1000}) {
      const std::string text = Gemm(types, 41, 37, depth, "i,k", "k,j", "const ");
      const std::string assembly = Assembly(text, cpu);
      EXPECT_THAT(assembly, HasSubstr("\ttdp")) << text;
      EXPECT_THAT(assembly, Not(HasSubstr("vpdpbusd"))) << text;
      EXPECT_THAT(assembly, Not(HasSubstr("vdpbf16ps"))) << text;
      CheckPointsOf(text, TargetOf(cpu), 1, 11);
    }
  }
  // A group of integers that is not whole too.
  const std::string odd = Gemm({"i8", "u8", "i32"}, 41, 37, 101, "i,k", "k,j", "const ");
  EXPECT_THAT(Assembly(odd, cpu), Not(HasSubstr("vpdpbusd")));
  CheckPointsOf(odd, TargetOf(cpu), 1, 12);
  EXPECT_GE(CheckPointsWith({{"ku", 16}}, Gemm({"u8", "i8", "i32"}, 41, 37, 96, "i,k", "k,j", "const "),
                            TargetOf(cpu)),
            1);
}

// Pixels of a padded image lie so that no row of a tile crosses the end of a cache line: steps of 36 and 48
// bytes begin 64 apart, and pixels of 100 are 128 apart.
TEST(ProductInstructionsTest, TilesOfAPaddedImageLieInCacheLines) {
  const std::string cpu = kTargets[std::size(kTargets) - 1];
  for (const auto& [channels, step] : {std::pair{"48", "pack(t2, [0, 1, 2, 3/64, 3%64])"},
                                       {"72", "pad_groups(t2, 3, 36, 64)"},
                                       {"96", "pad_groups(t2, 3, 48, 64)"},
                                       {"100", "pack(t2, [0, 1, 2, 3/128, 3%128])"}}) {
    const std::string text = PaddedConvolution({"u8", "u8", "i32"}, 1, 5, std::stoi(channels), 36, "const ");
    const Workload canonical = CanonicalWorkload(text);
    const Target target = TargetOf(cpu);
    const Sketch sketch = GenerateSketches(canonical, target).front();
    const auto trace = sketch.instantiate(sketch.default_choice);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_THAT(PrintTrace(*trace), HasSubstr(step));
    CheckPointsOf(text, target, 3, 14);
  }
  CheckPointsOf(PaddedConvolution({"bf16", "bf16", "f32"}, 1, 5, 48, 36, "const "), TargetOf(cpu), 2, 15);
}

// Zeros do not meet what lies beyond the depth: infinities of the next row and of the next panel's column.
TEST(ProductInstructionsTest, TheRestOfTheDepthStaysFinite) {
  const std::string text = R"(workload w(x: bf16[20,38], y: const bf16[38,36]) -> (c: f32[20,36]) {
  a[i,k]: bf16[20,38] = select(i == 3, bf16(inf), x[i,k])
  b[k,j]: bf16[38,36] = select(j == 20, bf16(inf), y[k,j])
  c[i,j] = sum[k:38](f32(a[i,k]) * f32(b[k,j]))
})";
  const std::string cpu = kTargets[std::size(kTargets) - 1];
  EXPECT_THAT(Assembly(text, cpu), HasSubstr("tdpbf16ps"));
  EXPECT_THAT(Assembly(text, cpu), Not(HasSubstr("vdpbf16ps")));
  CheckPointsOf(text, TargetOf(cpu), 3, 13);
}

// The last lines of 7 leave a tile of fewer. Lines of 7 and 17 pixels run on in the same registers, all lines
// and 4 of them.
TEST(ProductInstructionsTest, TileRegistersHoldSeveralLinesOfAnImage) {
  const Target target = TargetOf(kTargets[std::size(kTargets) - 1]);
  for (const auto& [width, choices] : {std::pair{5, 4}, {7, 4}, {16, 3}, {17, 3}, {21, 2}}) {
    const Workload canonical = CanonicalWorkload(Convolution({"bf16", "bf16", "f32"}, width, 40));
    const Sketch sketch = GenerateSketches(canonical, target).front();
    Choice choice = sketch.default_choice;
    const size_t lines = DecisionNamed(sketch, "lines"), columns = DecisionNamed(sketch, "nv");
    choice[columns] = 0;  // one
    int legal = 0;
    for (size_t i = 0; i < sketch.space.decisions[lines].choices.size(); ++i) {
      choice[lines] = static_cast<int>(i);
      if (!sketch.space.Legal(choice)) continue;
      ++legal;
      const absl::Status status = CheckSketchPoint(canonical, target, sketch, choice, kTolerance);
      EXPECT_TRUE(status.ok()) << width << " wide\n" << status.message();
    }
    EXPECT_EQ(legal, choices) << width;
  }
}

// The function ends with the parallel loop of the second product, after tiles of its own for the first.
TEST(ProductInstructionsTest, ParallelLoopFollowsTilesOfOneThread) {
  const Target target = TargetOf(kTargets[std::size(kTargets) - 1]);
  const Workload canonical = CanonicalWorkload(
      R"(workload w(a: bf16[256,128], b: const bf16[128,256], c: const bf16[256,256]) -> (e: f32[256,256]) {
  s[i,j]: f32[256,256] = sum[k:128](f32(a[i,k]) * f32(b[k,j]))
  t[i,j]: bf16[256,256] = bf16(s[i,j])
  e[i,j] = sum[k:256](f32(t[i,k]) * f32(c[k,j]))
})");
  const Sketch sketch = GenerateSketches(canonical, target).front();
  Choice choice = sketch.default_choice;
  size_t products = 0;
  for (size_t d = 0; d < choice.size(); ++d) {
    const Decision& decision = sketch.space.decisions[d];
    if (!decision.name.ends_with(".par")) continue;
    const bool is_first = products++ == 0;
    for (size_t i = 0; i < decision.choices.size(); ++i) {
      if ((decision.choices[i] == 0) == is_first) choice[d] = static_cast<int>(i);
    }
  }
  ASSERT_EQ(products, 2u);
  ASSERT_TRUE(sketch.space.Legal(choice));
  const absl::Status status = CheckSketchPoint(canonical, target, sketch, choice, kTolerance);
  EXPECT_TRUE(status.ok()) << status.message();
}

// Each has panels of its own, under names of their own.
TEST(ProductSketchesTest, TwoProductsShareAWeight) {
  const std::string text =
      R"(workload w(a: f32[20,40], b: f32[30,40], w: const f32[50,40]) -> (c: f32[20,50], d: f32[30,50]) {
  c[i,j] = sum[k:40](a[i,k] * w[j,k])
  d[i,j] = sum[k:40](b[i,k] * w[j,k])
})";
  const Target target = TargetOf("mcpu=haswell");
  EXPECT_EQ(GenerateSketches(CanonicalWorkload(text), target).front().name, "contraction+contraction");
  CheckPointsOf(text, target, 2, 1);
}

TEST(ProductInstructionsTest, TheTargetsBestIsTaken) {
  const auto gemm = [](const Types& types) { return Gemm(types, 64, 64, 128, "i,k", "k,j", "const "); };
  const std::string amx = "mcpu=sapphirerapids features=+amx-bf16,+amx-int8";
  EXPECT_THAT(Assembly(gemm({"bf16", "bf16", "f32"}), amx), HasSubstr("tdpbf16ps"));
  EXPECT_THAT(Assembly(gemm({"i8", "i8", "i32"}), amx), HasSubstr("tdpbssd"));
  EXPECT_THAT(Assembly(gemm({"u8", "i8", "i32"}), amx), HasSubstr("tdpbusd"));
  EXPECT_THAT(Assembly(gemm({"i8", "u8", "i32"}), amx), HasSubstr("tdpbsud"));
  EXPECT_THAT(Assembly(gemm({"u8", "u8", "i32"}), amx), HasSubstr("tdpbuud"));
  EXPECT_THAT(Assembly(gemm({"bf16", "bf16", "f32"}), "mcpu=znver4"), HasSubstr("vdpbf16ps"));
  EXPECT_THAT(Assembly(gemm({"u8", "i8", "i32"}), "mcpu=cascadelake"), HasSubstr("vpdpbusd"));
  EXPECT_THAT(Assembly(gemm({"i8", "i8", "i32"}), "mcpu=alderlake"), HasSubstr("vpdpbusd"));
  EXPECT_THAT(Assembly(gemm({"u8", "i8", "i32"}), "mcpu=haswell"), HasSubstr("vpmaddwd"));
  EXPECT_THAT(Assembly(gemm({"bf16", "bf16", "f32"}), "mcpu=haswell"), HasSubstr("vfmadd"));
  EXPECT_THAT(Assembly(gemm({"f16", "f16", "f32"}), "mcpu=haswell"), HasSubstr("vcvtph2ps"));
  EXPECT_THAT(Assembly(gemm({"f32", "f32", "f32"}), "mcpu=x86-64"), HasSubstr("\tmulps"));
  EXPECT_THAT(Assembly(gemm({"u8", "i8", "i32"}), "mcpu=x86-64"), HasSubstr("\tpmaddwd"));
  EXPECT_THAT(Assembly(gemm({"f32", "f32", "f32"}), "mcpu=ivybridge"), HasSubstr("vmulps\t%ymm"));
  EXPECT_THAT(Assembly(gemm({"f16", "f16", "f32"}), "mcpu=ivybridge"), HasSubstr("vcvtph2ps"));
  // The sum of the weights is known ahead, and the sign is changed once.
  EXPECT_THAT(Assembly(gemm({"u8", "u8", "i32"}), "mcpu=cascadelake"), HasSubstr("vpdpbusd"));
  EXPECT_THAT(Assembly(gemm({"i8", "i8", "i32"}), "mcpu=cascadelake"), Not(HasSubstr("vpmaddwd")));
  // Panels at run time are not made byte by byte.
  for (const char* order : {"k,j", "j,k"}) {
    const std::string assembly =
        Assembly(Gemm({"u8", "i8", "i32"}, 64, 64, 128, "i,k", order, ""), "mcpu=znver4");
    EXPECT_THAT(assembly, HasSubstr("vpunpck"));
    EXPECT_THAT(assembly, Not(HasSubstr("vpextrb")));
    EXPECT_THAT(assembly, Not(HasSubstr("\tmovb")));
  }
  // One row is no tile.
  EXPECT_THAT(Assembly(Gemm({"bf16", "bf16", "f32"}, 1, 64, 128, "i,k", "k,j", "const "), amx),
              HasSubstr("vdpbf16ps"));
}

}  // namespace
}  // namespace mycc
