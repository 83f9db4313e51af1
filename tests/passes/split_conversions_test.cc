// Indices that are converted to f32 in two parts, where f32 has all of them exactly.
#include "codegen/passes/passes.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

const Var kConvertedOuter = MakeVar("i", 1 << 20), kConvertedLane = MakeVar("b", 16);
const Buffer kConvertedOut = MakeBuffer("t", DType::kF32, {16}, Scope::kLocal);

Stmt OverLanes(LoopKind kind, const Expr& value) {
  const Stmt store = Put(kConvertedOut, {VarRef(kConvertedLane)}, value);
  return Loop(kConvertedOuter, std::make_shared<For>(kConvertedLane, IntConst(16), kind, store));
}
std::string SplitText(LoopKind kind, const Expr& value) {
  return PrintStmt(SplitConversions(OverLanes(kind, value)));
}

Expr ConvertedIndex(const Expr& index) { return MakeCast(DType::kF32, index); }

TEST(SplitConversionsTest, UnrolledLoop) {
  const Expr index = VarRef(kConvertedOuter) * 8 - VarRef(kConvertedLane) + 3;
  EXPECT_EQ(SplitText(LoopKind::kUnroll, ConvertedIndex(index)), R"(for i in 1048576
  unroll b in 16
    t[b] = f32(i * 8 + 3) + f32(b * -1)
)");
}

TEST(SplitConversionsTest, OthersStay) {
  const Expr small = VarRef(kConvertedOuter) - VarRef(kConvertedLane);
  // f32 has no odd numbers from 2 to the 24th on.
  const Expr large = VarRef(kConvertedOuter) * 17 - VarRef(kConvertedLane);
  const Expr folded = FloorDiv(VarRef(kConvertedOuter) + VarRef(kConvertedLane), 3);
  EXPECT_EQ(SplitText(LoopKind::kSerial, ConvertedIndex(small)),
            PrintStmt(OverLanes(LoopKind::kSerial, ConvertedIndex(small))));
  for (const Expr& index : {large, folded, VarRef(kConvertedLane) * 2})
    EXPECT_EQ(SplitText(LoopKind::kUnroll, ConvertedIndex(index)),
              PrintStmt(OverLanes(LoopKind::kUnroll, ConvertedIndex(index))));
}

}  // namespace
}  // namespace mycc
