// LLVM's builder, with branches and with arithmetic of the language's number types, on scalars and vectors
// alike, by the semantics of expr/eval.h.
//
// In registers, floats of 16 and 8 bits are floats with a representable value, and bool is i1; in memory they
// are i16 and i8. Thread rule: one owner; emits at the insertion point.
#pragma once

#include <utility>

#include "codegen/expr/expr.h"
#include "codegen/target/target.h"
#include "llvm/Analysis/TargetFolder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace mycc {

using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

// The lanes of a vector; 1 of a scalar.
int LanesOf(const llvm::Type* type);
inline int LanesOf(const Value* value) { return LanesOf(value->getType()); }
inline bool IsVector(const Value* value) { return value->getType()->isVectorTy(); }
// A vector of `lanes` lanes; of one lane a scalar.
llvm::Type* WithLanes(llvm::Type* element, int lanes);
// `element`, or a vector of it with as many lanes as `value`: maybe one, with which reductions end.
inline llvm::Type* Like(const Value* value, llvm::Type* element) {
  return value->getType()->getWithNewType(element);
}
// Constants of the type of `like`, in all lanes.
inline llvm::Constant* Int(const Value* like, uint64_t bits) {
  return llvm::ConstantInt::get(like->getType(), bits);
}
inline llvm::Constant* Float(const Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}
intrinsic::ID IntrinsicNamed(llvm::StringRef name);

class Builder : public llvm::IRBuilder<llvm::TargetFolder> {
 public:
  Builder(const llvm::Module& module, const CpuFeatures& features);

  const CpuFeatures features;

  // `lanes` of 1 is a scalar.
  llvm::Type* RegisterType(DType dtype, int lanes = 1);
  llvm::Type* MemoryType(DType dtype, int lanes = 1);
  Value* FromMemory(DType dtype, Value* stored);
  Value* ToMemory(DType dtype, Value* value);
  // Rounds floats to bf16 as memory has it, by one instruction, which treats subnormal numbers as zero.
  bool CanRoundToBF16(int lanes) const;
  Value* RoundedToBF16(Value* floats);  // REQUIRES: CanRoundToBF16 of its lanes
  llvm::Constant* Constant(DType dtype, Scalar value);

  Value* Unary(Op op, DType dtype, Value* a);
  Value* Binary(Op op, DType dtype, Value* a, Value* b);
  // Divides the lanes of `a` by one number, within 1.5 units in the last place. It multiplies by the
  // reciprocal, which is hoisted out of loops in which the divisor does not change. REQUIRES: `dtype` is a
  // float of at most 32 bits.
  Value* DivideByScalar(DType dtype, Value* a, Value* divisor);
  Value* DivideByRoot(Value* a, Value* b);
  Value* Compare(Op op, DType operand, Value* a, Value* b);
  Value* Cast(DType to, DType from, Value* value);

  // Float bits as i32, and back.
  Value* AsInt(Value* f) { return CreateBitCast(f, Like(f, getInt32Ty())); }
  Value* AsFloat(Value* bits) { return CreateBitCast(bits, Like(bits, getFloatTy())); }
  Value* Abs(Value* f) { return CreateUnaryIntrinsic(intrinsic::fabs, f); }
  // The lesser of `f` and `bound`; NaN stays.
  Value* AtMost(Value* f, double bound);
  // a * b + c, rounded once or twice.
  Value* MulAdd(Value* a, Value* b, Value* c) {
    return CreateIntrinsic(intrinsic::fmuladd, {a->getType()}, {a, b, c});
  }

  // `lanes` copies of a scalar; of one lane, the scalar. A vector is returned unchanged.
  Value* Splat(Value* value, int lanes);
  // The lower half of a vector (0), or the upper one (1).
  Value* HalfOf(Value* vector, int half);
  // An instruction of 4, 8 or 16 lanes of 32 bits: the intrinsic llvm.x86.NAME.BITS.
  Value* OfLanes(llvm::StringRef name, int lanes, llvm::ArrayRef<Value*> args);
  // Whether the target has instructions with masks for that number of floats.
  bool CanMask(int lanes) const;
  // An instruction with a mask: lanes that are not `kept` get 0, and null keeps all. `rounds`: the one for 16
  // lanes has an operand that says how it rounds.
  Value* Masked(llvm::StringRef name, llvm::SmallVector<Value*, 5> args, bool rounds, Value* kept = nullptr);

  // Emits a branch, its arms by `then` and `otherwise`, and goes on where they meet. `weights` says which arm
  // is likely; null for neither.
  template <typename ThenFn, typename ElseFn>
  void Branch(Value* condition, const ThenFn& then, const ElseFn& otherwise,
              llvm::MDNode* weights = nullptr) {
    llvm::Function* function = GetInsertBlock()->getParent();
    llvm::BasicBlock* blocks[2] = {llvm::BasicBlock::Create(getContext(), "then", function),
                                   llvm::BasicBlock::Create(getContext(), "else", function)};
    llvm::BasicBlock* join = llvm::BasicBlock::Create(getContext(), "join", function);
    CreateCondBr(condition, blocks[0], blocks[1], weights);
    SetInsertPoint(blocks[0]);
    then();
    CreateBr(join);
    SetInsertPoint(blocks[1]);
    otherwise();
    CreateBr(join);
    SetInsertPoint(join);
  }
  // The same for arms that return values of one type: the value of the arm that runs.
  template <typename ThenFn, typename ElseFn>
  Value* Choice(Value* condition, const ThenFn& then, const ElseFn& otherwise,
                llvm::MDNode* weights = nullptr) {
    Value* values[2];
    llvm::BasicBlock* ends[2];
    const auto keep = [&](int arm, Value* value) {
      values[arm] = value;
      ends[arm] = GetInsertBlock();
    };
    Branch(
        condition, [&] { keep(0, then()); }, [&] { keep(1, otherwise()); }, weights);
    llvm::PHINode* chosen = CreatePHI(values[0]->getType(), 2);
    for (int arm = 0; arm < 2; ++arm) chosen->addIncoming(values[arm], ends[arm]);
    return chosen;
  }

 private:
  // The bits of a float, rounded at the last `dropped` ones, ties to even. Those are arbitrary in the result.
  Value* RoundedAt(Value* bits, int dropped);
  // Rounds a float to the nearest value of a narrower type; other types are returned unchanged.
  Value* Round(DType dtype, Value* f);
  // float -> i16 or i8, and back; of narrow types other than bf16.
  Value* NarrowBits(DType dtype, Value* f);
  Value* FromNarrowBits(DType dtype, Value* narrow);
  Value* NarrowDouble(DType to, Value* d);
  Value* IntToFloat(DType to, DType from, Value* i);
  Value* FloatToInt(DType to, Value* f);

  // An elementary function on f64, f32 or vectors of them (vector_math.cc): exp, exp2, log, tanh, erf, sin,
  // cos or, with y, pow.
  Value* Function(Op op, Value* x, Value* y = nullptr);
  // tanh and erf under AVX-512 (vector_math_pieces.cc); null for others.
  Value* FunctionByPieces(Op op, Value* x);

  Value* FloatUnary(Op op, DType dtype, Value* a);
  Value* Rsqrt(Value* a);
  Value* RsqrtEstimate(Value* a);
  Value* FloatBinary(Op op, DType dtype, Value* a, Value* b);
  Value* IntBinary(Op op, DType dtype, Value* a, Value* b);
  Value* BoolBinary(Op op, Value* a, Value* b);
  // Quotient and remainder.
  std::pair<Value*, Value*> FloorDivide(DType dtype, Value* a, Value* b);
  Value* TF32(Value* f);
};

}  // namespace mycc
