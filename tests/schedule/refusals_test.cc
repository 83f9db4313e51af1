// Every primitive's refusals: what it says when it is not legal.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kGemm[] =
    R"(workload gemm(a: f32[13,10], b: const f32[10,18], bias: f32[18]) -> (y: f32[13,18]) {
  c[i,j]: f32[13,18] = sum[k:10](a[i,k] * b[k,j])
  y[i,j] = max(c[i,j] + bias[j], 0.0)
})";

struct Refusal {
  const char* steps;
  const char* message;
};

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, SaysWhy) {
  EXPECT_THAT(ScheduledText(kGemm, GetParam().steps), HasSubstr(GetParam().message));
}

constexpr Refusal kRefusals[] = {
    {"split(t9.a0, [4])",
     "split(t9.a0, [4]): there is no loop t9.a0; the loops are t3.a0, t3.a1, t3.r0, t4.a0, t4.a1"},
    {"split(t3.a0, [0])", "factor 0 is not a positive tile size"},
    {"split(t3.a0, [])", "expected at least one inner factor"},
    {"bind(t3.a0, parallel)\nsplit(t3.a0, [2])", "the loop is parallel; only serial loops are split"},
    {"split_axis(t3.a1, 4)", "factor 4 does not divide 18"},
    {"split_axis(t3.r0, 5)", "loop t3.r0 is not that of one axis of t3"},
    {"split(t3.a1, [6])\nsplit_axis(t3.a1.1, 3)", "loop t3.a1.1 is not that of one axis of t3"},
    {"bind(t3.a0, parallel)\nsplit_axis(t3.a0, 13)", "the loop is parallel; only serial loops are split"},
    {"split_axis(t3.a1, 6)\nrfactor(t3.r0, 2)", "t3 has been scheduled already"},
    {"split_stride_phases(t3)", "t3 is not a sum of select((i + p - r) % f == 0"},
    {"elide_reduction(t3)", "elide_reduction(t3): t3 is no reduction of one term"},
    {"elide_reduction(t4)", "elide_reduction(t4): t4 is no reduction of one term"},
    {"flip_sign(t3, t0)", "t3 is not a sum of i32(a[..]) * i32(b[..]) of bytes"},
    {"skip_zeros(t3, t2, 0)", "t3 does not sum products of elements of t2"},
    {"skip_zeros(t4, t0, 0)", "t4 does not sum products of elements of t0"},
    {"skip_zeros(t3, t0, 2)", "dimension 2; t0 has 2"},
    {"skip_zeros(t3, t0, 1)", "t0 is not select(a <= i && i < b && .., element, 0) along dimension 1"},
    {"split(t3.a0, [2])\nskip_zeros(t3, t0, 1)", "t3 has been scheduled already"},
    {"cache_read(t1, t3, root, packed)\npad_groups(t1.r, 1, 4, 8)", "groups of 4; expected a divisor of 18"},
    {"cache_read(t1, t3, root, packed)\npad_groups(t1.r, 1, 6, 6)", "expected more than 6 and at most 96"},
    {"reorder([t3.a0, t3.a0])", "loop t3.a0 is named twice"},
    {"reorder([t3.a0])", "expected at least two loops"},
    {"reorder([t3.a0, t4.a0])", "not one perfect nest"},
    {"fuse([t3.a0, t3.r0])", "t3.r0 is not the only statement directly inside t3.a0"},
    {"bind(t3.a0, sideways)", "sideways is not a loop kind"},
    {"bind(t3.r0, parallel)", "carries a reduction"},
    {"bind(t3.a0, block)", "block is for GPUs; a CPU has parallel"},
    {"cache_read(t0, t3, t3.a0, shared)", "scope shared is for GPUs"},
    {"bind(t3.a0, vector)", "a vector loop must be innermost"},
    {"inline(t3)", "inline(t3): the block is a reduction"},
    {"inline(t4)", "t4 is an output"},
    {"compute_at(t4, t3.a0)", "no block reads t4"},
    {"split(t3.a0, [4])\ncompute_at(t3, t4.a0)", "t3 has been scheduled already"},
    {"reverse_compute_at(t4, t4.a0)", "t4 is already under loop t4.a0"},
    {"merge(t3.a0, t3.a1)", "loops t3.a0 and t3.a1 are not adjacent in one body"},
    {"merge(t4.a0, t3.a0)", "do not follow each other"},
    {"bind(t4.a0, parallel)\nmerge(t3.a0, t4.a0)", "are not both plain serial loops"},
    {"split(t4.a0, [2])\nmerge(t3.a0, t4.a0.0)", "have different extents"},
    {"split(t3.a0, [7])\nsplit(t4.a0, [8])\nmerge(t3.a0.0, t4.a0.0)",
     "dimension 0 of t3 is read in an iteration that has not written it"},
    {"reorder([t3.r0, t3.a0])\nsplit(t3.r0, [7])\nsplit(t4.a0, [8])\nmerge(t3.r0.0, t4.a0.0)",
     "loop t3.r0.0 carries the reduction of t3, which is not finished before its end"},
    {"reverse_inline(t4)", "t3 is a reduction without an accumulator; cache_write it first"},
    {"cache_write(t3, t4.a0)", "t3 is not under loop t4.a0"},
    {"cache_write(t3, t3.a0)\ncache_write(t3, t3.a1)", "has an accumulator already"},
    {"cache_read(t0, t3, root, packed)", "scope packed is for a const input copied at root; t0 is not const"},
    {"cache_read(t2, t3, root, local)", "t3 does not read t2"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, 1%8])", "dimension 1 is not covered"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, 1/8, 1%4])", "not one to one"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, 5])", "there is no dimension 5"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, x])", "component x is malformed"},
    {"pack(t1, [0, 1])", "there is no allocated buffer t1"},
    {"pack(t3, [1/8, 0, 1%8])\ncache_read(t3, t4, root, local)", "t3 has been packed; copy it before"},
    {"reorder([t3.r0, t3.a0])\ncache_write(t3, t3.a1)\ncache_read(t3, t3.i, t3.i.a0, local)",
     "t3.w writes a part of t3 in each iteration of loop t3.r0"},
    {"split(t3.a1, [7])\nreorder([t3.a1.1, t3.a0, t3.r0, t3.a1.0])\nreverse_compute_at(t4, t3.a1.1)",
     "t3 does not fill one box of t3 in an iteration"},
    {"reorder([t3.r0, t3.a0])\ncache_write(t3, t3.a0)\nsplit(t3.r0, [4])\nsplit(t3.r0.1, "
     "[3])\nreverse_inline(t4)",
     "several reduction loops are around the accumulator"},
    {"reorder([t3.r0, t3.a0])\ncache_write(t3, t3.a0)\nsplit(t3.r0, [16])\nreverse_inline(t4)",
     "loop t3.r0.1 overshoots: t3.w may not run in its last iteration"},
    {"cache_write(t3, t3.a0)\ncache_read(t3.acc, t3.w, t3.a0, local)",
     "t3.acc is an accumulator; copy the tensor that it is stored to"},
    {"cache_read(t2, t4, t4.a0, local)\ncache_read(t0, t3, t3.a0, local)\ncache_read(t0.r, t3, t3.r0, local)",
     "t0.r is a copy of a box; copy the tensor"},
    {"split(t4.a0, [6])\ncache_read(t2, t4, t4.a0.1, local)\nsplit(t4.a0.1, [4])\ncompute_at(t2.r, t4.a0.0)",
     "t2.r depends on loop t4.a0.1.0, which is not around its new place"},
    {"cache_write(t3, t3.r0)\nfuse([t3.a1, t3.r0])",
     "the fused loop would carry both a reduction and an axis of t3"},
    {"cache_write(t3, t3.a0)\ncompute_at(t3.w, t4.a0)", "t3.w has been scheduled already"},
    {"rfactor(t3.a0, 4)", "the loop carries no reduction"},
    {"rfactor(t3.r0, 400)", "factor 400 is not between 2 and the extent 10"},
    {"tensorize(t3.r0, fma.f32)", "t3 has no accumulator; cache_write it first"},
    {"tensorize(t3.r0, mma.bf17)",
     "there is no instruction mma.bf17; there are amx.bf16, amx.i8, dot.bf16, dot.i8, madd.i8, fma.f32, "
     "fma.f64"},
    {"fetch_next(t3.a0)", "the loop is not inside another one"},
    {"nontemporal(t3.a0)", "no block under t3.a0 writes an output of the workload"},
    {"prefetch(t3.r0, 1, 0, 0)", "the loop belongs to no instruction of a CPU; tensorize it first"},
    {"cache_write(t3, t3.a0)\ntensorize(t3.a1, fma.f64)",
     "fma.f64 multiplies f64 into f64; t3 multiplies f32 by f32 into f32"},
};
INSTANTIATE_TEST_SUITE_P(All, RefusalTest, ::testing::ValuesIn(kRefusals));

constexpr char kArgMax[] = R"(workload best(x: f32[4,9], w: f32[7]) -> (y: f32[7]) {
  b[i]: i32[4] = argmax[j:9](x[i,j])
  z[i]: f32[4] = x[i,0] * f32(b[i])
  y[k] = select(k < 4, z[k], w[k])
})";

class MoreRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(MoreRefusalTest, SaysWhy) {
  EXPECT_THAT(ScheduledText(kArgMax, GetParam().steps), HasSubstr(GetParam().message));
}

constexpr Refusal kMoreRefusals[] = {
    {"pack(t2.best, [0/3, 0%3])", "t2 keeps the parts of its tuples in one layout, that of t2 and t2.best"},
    {"cache_write(t4, t4.a0)\ncache_write(t4.w, t4.a0)",
     "t4.w copies t4.acc; an accumulator would copy it twice"},
    {"split(t3.a0, [2])\nreverse_compute_at(t4, t3.a0.0)",
     "t4 has elements that read nothing of t3; no iteration would write them"},
    {"cache_write(t3, t3.a0)\nreverse_inline(t4)", "t4 does not have the shape of t3"},
};
INSTANTIATE_TEST_SUITE_P(All, MoreRefusalTest, ::testing::ValuesIn(kMoreRefusals));

TEST(RefusalTest, JoinGroups) {
  constexpr char kGroups[] = R"(workload c(x: f16[40], w: f16[60,2]) -> (y: f32[60], z: f32[60], u: f32[60]) {
  y[k] = sum[c:2](f32(x[k//3*2+c]) * f32(w[k,c]))
  z[k] = sum[c:2](f32(x[k//60*2+c]) * f32(w[k,c]))
  u[k] = sum[c:2](f32(x[k//3*2+c]) * f32(w[k//2,c]))
})";
  EXPECT_THAT(ScheduledText(kGroups, "join_groups(t2, 3)"),
              HasSubstr("3 groups in one; expected a divisor of the 20 groups of t2, and at least 2"));
  EXPECT_THAT(ScheduledText(kGroups, "join_groups(t2, 1)"), HasSubstr("and at least 2"));
  for (const char* sum : {"t3", "t4"}) {
    EXPECT_THAT(ScheduledText(kGroups, absl::StrCat("join_groups(", sum, ", 2)")),
                HasSubstr(absl::StrCat(sum, " is not a sum of products in groups of channels")));
  }
}

// Steps of one pixel; channels that are not together; a window shorter than its steps.
TEST(RefusalTest, FoldStride) {
  constexpr char kStrides[] =
      R"(workload c(x: f32[12,3], z: f32[3,12], w: f32[3,3], v: f32[1,3]) -> (y: f32[5], u: f32[5], t: f32[5]) {
  y[i] = sum[r:3, c:3](x[i+r,c] * w[r,c])
  u[i] = sum[r:3, c:3](z[c,i*2+r] * w[r,c])
  t[i] = sum[r:1, c:3](x[i*2+r,c] * v[r,c])
})";
  for (const char* sum : {"t4", "t5", "t6"}) {
    EXPECT_THAT(ScheduledText(kStrides, absl::StrCat("fold_stride(", sum, ")")),
                HasSubstr(absl::StrCat(sum, " is not a convolution that moves by a stride")));
  }
}

// Bytes: of both signs, and of one tensor.
TEST(RefusalTest, FlipSign) {
  constexpr char kBytes[] = R"(workload g(a: u8[5,9], b: i8[7,9]) -> (c: i32[5,7], d: i32[5,5]) {
  c[i,j] = sum[k:9](i32(a[i,k]) * i32(b[j,k]))
  d[i,j] = sum[k:9](i32(a[i,k]) * i32(a[j,k]))
})";
  EXPECT_THAT(ScheduledText(kBytes, "flip_sign(t2, t0)"), HasSubstr("t2 multiplies u8 by i8 already"));
  EXPECT_THAT(ScheduledText(kBytes, "flip_sign(t3, t0)"), HasSubstr("t3 multiplies a tensor by itself"));
  constexpr char kLike[] = R"(workload g(a: i8[5,9], b: i8[7,9]) -> (c: i32[5,7]) {
  c[i,j] = sum[k:9](i32(a[i,k]) * i32(b[j,k]))
})";
  EXPECT_THAT(ScheduledText(kLike, "flip_sign(t2, t2)"), HasSubstr("t2 does not multiply t2"));
  EXPECT_THAT(ScheduledText(kLike, "split(t2.a0, [2])\nflip_sign(t2, t0)"),
              HasSubstr("t2 has been scheduled already"));
}

TEST(RefusalTest, ARefusedStepLeavesTheScheduleAsItWas) {
  Schedule schedule = Schedule::Create(CanonicalWorkload(kGemm), TestTarget());
  const std::string before = PrintFunction(schedule.function());
  const Step step{"inline", {{std::string("t3")}}};
  EXPECT_EQ(schedule.Apply(step).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PrintFunction(schedule.function()), before);
  EXPECT_TRUE(schedule.trace().steps.empty());
}

}  // namespace
}  // namespace mycc
