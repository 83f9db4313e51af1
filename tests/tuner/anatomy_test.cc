// What a rule is told of a workload: which stages are contractions, and of which operands.
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

}  // namespace
}  // namespace mycc
