// The facts about a workload that rules use: the stages that are contractions, and their operands.
#include "tuner/space/anatomy.h"

#include "gtest/gtest.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

TEST(AnatomyTest, ContractionsAreSeenThroughCasts) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload g(a: f16[5,7], b: const f16[6,7]) -> (y: f16[5,6]) {
           c[i,j]: f32[5,6] = sum[k:7](f32(a[i,k]) * f32(b[j,k]))
           y[i,j] = f16(c[i,j]) })"));
  ASSERT_TRUE(anatomy.info(0).contraction);
  const Contraction& c = *anatomy.info(0).contraction;
  EXPECT_TRUE(HasCast(c));
  EXPECT_EQ(c.rows, std::vector<int>{0});
  EXPECT_EQ(c.cols, std::vector<int>{1});
  EXPECT_TRUE(c.scalar.is_cast && c.vector.is_cast);
  EXPECT_EQ(c.scalar.buffer->dtype, DType::kF16);
  EXPECT_FALSE(c.scalar.is_const);
  EXPECT_TRUE(c.vector.is_const);
  EXPECT_FALSE(anatomy.info(1).contraction);
}

TEST(AnatomyTest, OneOperandMayBeCast) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload g(a: f32[5,7], b: i8[6,7]) -> (y: f32[5,6]) {
           y[i,j] = sum[k:7](a[i,k] * f32(b[j,k])) })"));
  ASSERT_TRUE(anatomy.info(0).contraction);
  const Contraction& c = *anatomy.info(0).contraction;
  EXPECT_FALSE(c.scalar.is_cast);
  EXPECT_TRUE(c.vector.is_cast);
}

TEST(AnatomyTest, ArithmeticOnAnOperandIsNoContraction) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload g(a: f32[5,7], b: f32[6,7]) -> (y: f32[5,6]) {
           y[i,j] = sum[k:7](exp(a[i,k]) * b[j,k]) })"));
  EXPECT_FALSE(anatomy.info(0).contraction);
}

// y[k] of groups of 8 columns and 4 terms: whether the group is in the channel or has an axis of its own.
TEST(AnatomyTest, GroupsInAnAxisAreBatches) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload c(x: f32[2,6,12], w: f32[24,3,4]) -> (y: f32[2,4,24]) {
           y[n,i,k] = sum[r:3, c:4](x[n,i+r,(k//8)*4+c] * w[k,r,c]) })"));
  ASSERT_TRUE(anatomy.info(0).contraction);
  const Contraction& c = *anatomy.info(0).contraction;
  ASSERT_TRUE(c.groups);
  EXPECT_EQ(c.groups->axis, 2);
  EXPECT_EQ(c.groups->extent, 8);
  const Stage& product = anatomy.product(0);
  ASSERT_EQ(product.axes.size(), 4);
  EXPECT_EQ(product.axes[2]->name, "a2.0");
  EXPECT_EQ(product.axes[2]->extent, 3);
  EXPECT_EQ(product.axes[3]->name, "a2.1");
  EXPECT_EQ(product.axes[3]->extent, 8);
  EXPECT_EQ(c.rows, (std::vector<int>{0, 1}));
  EXPECT_EQ(c.batch, std::vector<int>{2});
  EXPECT_EQ(c.cols, std::vector<int>{3});
  EXPECT_EQ(c.scalar.buffer->name, "t0");
  EXPECT_FALSE(c.scalar.Uses(product.axes[3]));
  EXPECT_EQ(anatomy.stage(0).axes.size(), 3);
}

TEST(AnatomyTest, GroupsBeforeOtherAxes) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload c(x: f32[2,12,6], w: f32[24,4,3]) -> (y: f32[2,24,4]) {
           y[n,k,i] = sum[c:4, r:3](x[n,(k//8)*4+c,i+r] * w[k,c,r]) })"));
  ASSERT_TRUE(anatomy.info(0).contraction);
  const Contraction& c = *anatomy.info(0).contraction;
  ASSERT_TRUE(c.groups);
  EXPECT_EQ(c.groups->axis, 1);
  EXPECT_EQ(c.vector.buffer->name, "t0");
  EXPECT_EQ(c.rows, std::vector<int>{2});
  EXPECT_EQ(c.batch, std::vector<int>{1});
  EXPECT_EQ(c.cols, (std::vector<int>{0, 3}));
}

TEST(AnatomyTest, GroupsOfAnAxisOfTheirOwnAreBatches) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload c(x: f32[2,12], w: f32[3,8,4]) -> (y: f32[2,3,8]) {
           y[n,g,k] = sum[c:4](x[n,g*4+c] * w[g,k,c]) })"));
  ASSERT_TRUE(anatomy.info(0).contraction);
  const Contraction& c = *anatomy.info(0).contraction;
  EXPECT_FALSE(c.groups);
  EXPECT_EQ(c.batch, std::vector<int>{1});
  EXPECT_EQ(c.cols, std::vector<int>{2});
}

TEST(AnatomyTest, BothOperandsMayBeOfOneTensor) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload g(a: f16[5,7]) -> (y: f32[5,5]) { y[i,j] = sum[k:7](f32(a[i,k]) * f32(a[j,k])) })"));
  ASSERT_TRUE(anatomy.info(0).contraction);
  const Contraction& c = *anatomy.info(0).contraction;
  EXPECT_TRUE(c.OfOneTensor());
  EXPECT_NE(c.scalar.is_first, c.vector.is_first);
  EXPECT_EQ(c.rows, std::vector<int>{0});
  EXPECT_EQ(c.cols, std::vector<int>{1});
}

TEST(AnatomyTest, ColumnsMayStandBeforeAxesOfOne) {
  const Anatomy anatomy(CanonicalWorkload(
      R"(workload g(a: f16[5,7], b: f16[6,7]) -> (y: f32[5,6,1]) {
           y[i,j,l] = sum[k:7](f32(a[i,k]) * f32(b[j,k])) })"));
  ASSERT_TRUE(anatomy.info(0).contraction);
  const Contraction& c = *anatomy.info(0).contraction;
  EXPECT_EQ(c.rows, std::vector<int>{0});
  EXPECT_EQ(c.cols, std::vector<int>{1});
  EXPECT_EQ(c.batch, std::vector<int>{2});
}

// Ragged groups, and channels that are multiplied each for itself.
TEST(AnatomyTest, OtherSharedAxesAreNoGroups) {
  for (const char* text : {"workload c(x: f32[2,13], w: f32[25,4]) -> (y: f32[2,25]) {"
                           " y[n,k] = sum[c:4](x[n,(k//8)*3+c] * w[k,c]) }",
                           "workload c(x: f32[2,27], w: f32[24,4]) -> (y: f32[2,24]) {"
                           " y[n,k] = sum[c:4](x[n,k+c] * w[k,c]) }"}) {
    const Anatomy anatomy(CanonicalWorkload(text));
    EXPECT_FALSE(anatomy.info(0).contraction) << text;
    EXPECT_EQ(anatomy.product(0).axes.size(), 2) << text;
  }
}

}  // namespace
}  // namespace mycc
