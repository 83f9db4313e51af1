// Every primitive: a golden of what it makes, and the interpreter's word that the meaning is unchanged.
#include "absl/strings/substitute.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr char kGemm[] = R"(workload gemm(a: f32[13,10], b: const f32[10,18]) -> (c: f32[13,18]) {
  c[i,j] = sum[k:10](a[i,k] * b[k,j])
})";

constexpr char kGemmEpilogue[] =
    R"(workload gemm(a: f32[13,10], b: const f32[10,18], bias: f32[18]) -> (y: f32[13,18]) {
  c[i,j]: f32[13,18] = sum[k:10](a[i,k] * b[k,j])
  y[i,j] = max(c[i,j] + bias[j], 0.0)
})";

constexpr char kConv[] =
    R"(workload conv(x: f32[1,6,7,5], w: const f32[9,5,3,3], b: const f32[9]) -> (y: f32[1,6,7,9]) {
  p[n,i,j,c]: f32[1,8,9,5] = select(1 <= i && i < 7 && 1 <= j && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,6,7,9] = sum[c:5, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s])
  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0)
})";

constexpr char kGrouped[] =
    R"(workload g(x: const f32[5,9], w: const f32[18,3], b: f32[18]) -> (y: f32[5,18]) {
  a[i,k]: f32[5,18] = sum[c:3](x[i,(k//6)*3+c] * w[k,c])
  y[i,k] = max(a[i,k] + b[k], 0.0)
})";

constexpr char kSoftmax[] = R"(workload softmax(x: f32[5,37]) -> (y: f32[5,37]) {
  m[i]: f32[5] = max[j:37](x[i,j])
  e[i,j]: f32[5,37] = exp(x[i,j] - m[i])
  s[i]: f32[5] = sum[j:37](e[i,j])
  y[i,j] = e[i,j] / s[i]
})";

void Check(const std::string& name, const std::string& workload, const std::string& steps) {
  const absl::Status status = CheckTrace(workload, steps);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(MatchesGolden("schedule/" + name, ScheduledText(workload, steps)));
}

TEST(PrimitivesTest, Split) { Check("split", kGemm, "split(t2.a0, [2, 3])\nsplit(t2.r0, [4])\n"); }

TEST(PrimitivesTest, SplitOfSplitGuardsItsOwnOvershoot) {
  Check("split_overshoot", kGemm, "split(t2.r0, [6])\nsplit(t2.r0.1, [4])\n");
}

TEST(PrimitivesTest, Reorder) {
  Check("reorder", kGemm, "split(t2.a0, [4])\nreorder([t2.r0, t2.a1, t2.a0.0])\n");
}

TEST(PrimitivesTest, Fuse) { Check("fuse", kGemm, "fuse([t2.a0, t2.a1])\nsplit(t2.a0+a1, [8])\n"); }

TEST(PrimitivesTest, Bind) {
  Check("bind", kGemm,
        "split(t2.a1, [8])\nreorder([t2.r0, t2.a1.1])\nbind(t2.a0, parallel)\nbind(t2.a1.1, vector)\n");
}

TEST(PrimitivesTest, Inline) { Check("inline", kConv, "inline(t3)\n"); }

TEST(PrimitivesTest, ComputeAtTakesTheBoxOfItsReaders) {
  Check("compute_at", kConv, "split(t4.a1, [2])\ncompute_at(t3, t4.a1.0)\n");
}

TEST(PrimitivesTest, ComputeAtOfReductions) {
  Check("compute_at_softmax", kSoftmax,
        "compute_at(t3, t4.a0)\ncompute_at(t2, t4.a0)\ncompute_at(t1, t4.a0)\nbind(t4.a0, parallel)\n");
}

TEST(PrimitivesTest, ReverseComputeAt) {
  Check("reverse_compute_at", kGemmEpilogue, "split(t3.a0, [4])\nreverse_compute_at(t4, t3.a0.0)\n");
}

TEST(PrimitivesTest, Merge) {
  Check("merge", kSoftmax,
        "rfactor(t3.r0, 4)\nsplit(t2.a1, [4])\nmerge(t2.a0, t3.rf.a0)\nmerge(t2.a1.0, t3.rf.r0)\n");
}

TEST(PrimitivesTest, CacheReadAndPack) {
  Check("cache_read_pack", kGemm,
        "split(t2.a0, [4])\nsplit(t2.a1, [8])\nreorder([t2.a0.0, t2.a1.0, t2.r0, t2.a0.1, t2.a1.1])\n"
        "cache_read(t1, t2, root, packed)\npack(t1.r, [1/8, 0, 1%8])\ncache_read(t0, t2, t2.a0.0, "
        "local)\npack(t0.r, [0/4, 1, 0%4])\n");
}

TEST(PrimitivesTest, CacheWrite) {
  Check("cache_write", kGemm,
        "split(t2.a0, [4])\nsplit(t2.a1, [8])\nreorder([t2.a0.0, t2.a1.0, t2.r0, t2.a0.1, "
        "t2.a1.1])\ncache_write(t2, t2.a1.0)\n");
}

// The accumulator exists around the product alone, because the maximum under the same loop reads its result.
TEST(PrimitivesTest, CacheWriteBesideAReader) {
  Check("cache_write_beside", R"(workload w(a: f32[9,6], b: f32[7,6]) -> (y: f32[9,7]) {
  s[i,j]: f32[9,7] = sum[k:6](a[i,k] * b[j,k])
  m[i]: f32[9] = max[j:7](s[i,j])
  y[i,j] = s[i,j] - m[i]
})",
        "split(t4.a0, [4])\ncompute_at(t3, t4.a0.0)\ncompute_at(t2, t4.a0.0)\ncache_write(t2, t4.a0.0)\n");
}

TEST(PrimitivesTest, CacheWriteUnderSplitReduction) {
  Check("cache_write_split_k", kGemm,
        "split(t2.a0, [4])\nsplit(t2.r0, [4])\nreorder([t2.r0.0, t2.a0.0, t2.a1, t2.r0.1, "
        "t2.a0.1])\ncache_write(t2, t2.a1)\n");
}

TEST(PrimitivesTest, ReverseInline) {
  Check("reverse_inline", kGemmEpilogue,
        "split(t3.a0, [4])\nreorder([t3.a0.0, t3.r0, t3.a0.1, t3.a1])\ncache_write(t3, "
        "t3.a0.0)\nreverse_inline(t4)\n");
}

TEST(PrimitivesTest, ReverseInlineUnderSplitReduction) {
  Check("reverse_inline_split_k", kGemmEpilogue,
        "split(t3.a0, [4])\nsplit(t3.r0, [3])\nreorder([t3.r0.0, t3.a0.0, t3.r0.1, t3.a0.1, "
        "t3.a1])\ncache_write(t3, t3.a0.0)\nreverse_inline(t4)\n");
}

TEST(PrimitivesTest, RFactor) { Check("rfactor", kSoftmax, "rfactor(t1.r0, 8)\nrfactor(t3.r0, 16)\n"); }

TEST(PrimitivesTest, RFactorUnderARow) {
  Check("rfactor_row", kSoftmax,
        "rfactor(t3.r0, 16)\ncompute_at(t3, t4.a0)\ncompute_at(t3.rf, t4.a0)\ncompute_at(t2, "
        "t4.a0)\ncompute_at(t1, t4.a0)\n");
}

TEST(PrimitivesTest, SplitAxis) {
  Check("split_axis", kGrouped,
        "split_axis(t3.a1, 6)\nsplit(t3.a1.1, [4])\nreorder([t3.a0, t3.a1.0, t3.a1.1.0, t3.r0, t3.a1.1.1])\n"
        "cache_write(t3, t3.a1.1.0)\nreverse_inline(t4)\n");
}

TEST(PrimitivesTest, SplitAxisOfParts) {
  Check("split_axis_rfactor", kGrouped, "rfactor_runs(t3.r0, 2)\nsplit_axis(t3.rf.a1, 6)\n");
}

TEST(PrimitivesTest, SplitAxisOfAWriteBack) {
  Check("split_axis_write_back", kGrouped, "cache_write(t3, t3.a0)\nsplit_axis(t3.w.a1, 6)\n");
}

// Two phases along one axis, three along the other, whose first tap is the last phase's.
TEST(PrimitivesTest, Phases) {
  Check("phases", R"(workload w(x: f32[3,4], w: f32[4,6]) -> (y: f32[6,12]) {
  y[i,j] = sum[r:4, s:6](
    select(r <= i+1 && (i+1-r) % 2 == 0 && i+1-r < 6 && s <= j+2 && (j+2-s) % 3 == 0 && j+2-s < 12,
           x[(i+1-r)//2,(j+2-s)//3], 0.0) * w[r,s])
})",
        "split_stride_phases(t2)\nsplit_axis(t2.a0, 2)\nsplit_axis(t2.a1, 3)\n");
}

TEST(PrimitivesTest, ElideReduction) {
  Check("elide_reduction", R"(workload s(x: f32[6,1]) -> (y: f32[6,1]) {
  m[i]: f32[6] = max[k:1](x[i,k])
  s[i]: f32[6] = sum[k:1](exp(x[i,k] - m[i]))
  y[i,j] = s[i] * 2.0
})",
        "elide_reduction(t1)\nelide_reduction(t2)\ninline(t1)\ninline(t2)\n");
}

// The zeros around the image become 128, as its other zeros do.
TEST(PrimitivesTest, FlipSign) {
  Check("flip_sign", R"(workload c(x: i8[5,6,4], w: const i8[7,3,3,4], b: i32[7]) -> (y: i32[5,6,7]) {
  p[i,j,c]: i8[7,8,4] = select(1 <= i && i < 6 && 1 <= j && j < 7, x[i-1,j-1,c], i8(0))
  a[i,j,k]: i32[5,6,7] = sum[r:3, s:3, c:4](i32(p[i+r,j+s,c]) * i32(w[k,r,s,c]))
  y[i,j,k] = a[i,j,k] + b[k]
})",
        "flip_sign(t4, t3)\ninline(t3)\ninline(t4)\n");
}

TEST(PrimitivesTest, FlipSignOfUnsigned) {
  Check("flip_sign_unsigned", R"(workload g(a: u8[5,9], b: const u8[7,9]) -> (c: i32[5,7]) {
  c[i,j] = sum[k:9](i32(a[i,k]) * i32(b[j,k]))
})",
        "flip_sign(t2, t1)\n");
}

constexpr char kInGroups[] = R"(workload c(x: f16[5,6,24], w: $0f16[24,3,3,3]) -> (y: f32[3,4,24]) {
  y[i,j,k] = sum[r:3, s:3, c:3](f32(x[i+r,j+s,(k//3)*3+c]) * f32(w[k,r,s,c]))
})";

TEST(PrimitivesTest, JoinGroups) {
  Check("join_groups", absl::Substitute(kInGroups, ""), "join_groups(t2, 4)\n");
}

// The wider weights are made when the others are packed.
TEST(PrimitivesTest, JoinGroupsOfKnownWeights) {
  Check("join_groups_const", absl::Substitute(kInGroups, "const "), "join_groups(t2, 2)\n");
}

// Strides of 2 and 3, windows that they do not divide.
constexpr char kStrided[] = R"(workload c(x: f32[11,14,3], w: $0f32[4,3,5,3]) -> (y: f32[5,4,4]) {
  y[i,j,k] = sum[r:3, s:5, c:3](x[i*2+r,j*3+s,c] * w[k,r,s,c])
})";

TEST(PrimitivesTest, FoldStride) {
  Check("fold_stride", absl::Substitute(kStrided, ""), "fold_stride(t2)\n");
}

TEST(PrimitivesTest, FoldStrideOfKnownWeights) {
  Check("fold_stride_const", absl::Substitute(kStrided, "const "), "fold_stride(t2)\n");
}

TEST(PrimitivesTest, SkipZerosOfOneDimension) { Check("skip_zeros", kConv, "skip_zeros(t4, t3, 1)\n"); }

TEST(PrimitivesTest, SkipAllZerosAndReadTheImageAsItIs) {
  Check("skip_zeros_inline", kConv,
        "skip_zeros(t4, t3, 1)\nskip_zeros(t4, t3, 2)\ninline(t3)\nsplit(t4.a2, [3])\n"
        "reorder([t4.a0, t4.a1, t4.a2.0, t4.r1, t4.r2, t4.r0, t4.a2.1, t4.a3])\ncache_write(t4, t4.a2.0)\n");
}

TEST(PrimitivesTest, PadGroups) {
  Check("pad_groups", kGrouped,
        "cache_read(t0, t3, root, packed)\npad_groups(t0.r, 1, 3, 4)\n"
        "cache_read(t1, t3, root, packed)\npad(t1.r, 1, 4)\n");
}

TEST(PrimitivesTest, Tensorize) {
  Check("tensorize", kGemm,
        "split(t2.a0, [4])\nsplit(t2.a1, [8])\nreorder([t2.a0.0, t2.a1.0, t2.r0, t2.a0.1, "
        "t2.a1.1])\ncache_write(t2, t2.a1.0)\n"
        "tensorize(t2.r0, fma.f32)\n");
}

// 13 is six groups of two and one element.
TEST(PrimitivesTest, GroupsOfTheDepthLieTogether) {
  Check("tensorize_groups",
        R"(workload g(a: i8[6,13], b: const u8[13,20]) -> (c: i32[6,20]) {
  c[i,j] = sum[k:13](i32(a[i,k]) * i32(b[k,j]))
})",
        "split(t2.a1, [8])\nsplit(t2.r0, [2])\nreorder([t2.a1.0, t2.r0.0, t2.a0, t2.a1.1, t2.r0.1])\n"
        "cache_read(t1, t2, root, packed)\npack(t1.r, [1/8, 0/2, 1%8, 0%2])\ncache_write(t2, t2.a1.0)\n"
        "tensorize(t2.r0.0, madd.i8)\nprefetch(t2.r0.0, 2, 4, 0)\n");
}

TEST(PrimitivesTest, StoresPastTheCachesAndReadsAhead) {
  Check("bypass_and_fetch_next", kGemm, "fetch_next(t2.r0)\nnontemporal(t2.a0)\nbind(t2.a0, parallel)\n");
}

TEST(PrimitivesTest, FusedRowsTakeAnAccumulatorOfTheirTile) {
  Check("fused_rows", kConv,
        "fuse([t4.a0, t4.a1, t4.a2])\nsplit(t4.a0+a1+a2, [2, 6])\nsplit(t4.a3, [8])\n"
        "reorder([t4.a0+a1+a2.0, t4.a3.0, t4.a0+a1+a2.1, t4.r1, t4.r2, t4.r0, t4.a0+a1+a2.2, t4.a3.1])\n"
        "cache_read(t1, t4, root, packed)\npack(t1.r, [0/8, 2, 3, 1, 0%8])\n"
        "cache_write(t4, t4.a0+a1+a2.1)\nreverse_inline(t5)\ntensorize(t4.r0, fma.f32)\n");
}

}  // namespace
}  // namespace mycc
