// Shapes, strides and scopes of buffers.
#include "codegen/expr/buffer.h"

#include <gtest/gtest.h>

namespace mycc {
namespace {

TEST(Buffer, StridesAreRowMajor) {
  const Buffer buffer = MakeBuffer("x", DType::kF16, {2, 3, 4});
  EXPECT_EQ(buffer->rank(), 3);
  EXPECT_EQ(buffer->num_elements(), 24);
  EXPECT_EQ(buffer->bytes(), 48);
  EXPECT_EQ(buffer->stride(0), 12);
  EXPECT_EQ(buffer->stride(1), 4);
  EXPECT_EQ(buffer->stride(2), 1);
}

TEST(Buffer, RankZeroIsOneNumberAndAnEmptyExtentNone) {
  EXPECT_EQ(MakeBuffer("s", DType::kF32, {})->num_elements(), 1);
  EXPECT_EQ(MakeBuffer("e", DType::kF32, {3, 0})->num_elements(), 0);
}

TEST(Buffer, ScopesParseWhatTheyPrint) {
  for (Scope scope : {Scope::kGlobal, Scope::kPacked, Scope::kLocal, Scope::kShared, Scope::kFragment,
                      Scope::kAccumulator}) {
    Scope parsed;
    ASSERT_TRUE(ParseScope(ScopeName(scope), &parsed)) << ScopeName(scope);
    EXPECT_EQ(parsed, scope);
  }
  Scope parsed;
  EXPECT_FALSE(ParseScope("globl", &parsed));
}

}  // namespace
}  // namespace mycc
