// Emits arithmetic of the language's number types on LLVM values, scalars and vectors alike, with the
// semantics of expr/eval.h.
//
// In registers, floats of 16 and 8 bits are floats with a representable value, and bool is i1; in memory they
// are i16 and i8. Thread rule: one owner; emits at the builder's insertion point.
#pragma once

#include <array>
#include <utility>

#include "codegen/expr/expr.h"
#include "codegen/target/target.h"
#include "llvm/Analysis/TargetFolder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace mycc {

using Builder = llvm::IRBuilder<llvm::TargetFolder>;

// The lanes of a vector; 1 of a scalar.
int LanesOf(const llvm::Type* type);
inline int LanesOf(const llvm::Value* value) { return LanesOf(value->getType()); }
// A vector of `lanes` lanes; of one lane a scalar.
llvm::Type* WithLanes(llvm::Type* element, int lanes);
// The lower half of a vector (0), or the upper one (1).
llvm::Value* HalfOf(Builder& b, llvm::Value* vector, int half);
// Whether the target has instructions with masks for that number of floats.
bool CanMask(const CpuFeatures& features, int lanes);
// An instruction's intrinsics for 4, 8 and 16 lanes.
using IntrinsicByLanes = std::array<llvm::Intrinsic::ID, 3>;
llvm::Intrinsic::ID ForLanes(int lanes, const IntrinsicByLanes& intrinsics);
// An instruction with a mask; 0 in lanes that are not `kept`, null for all. `rounds`: the one for 16 lanes
// has an operand that says how it rounds.
llvm::Value* EmitMasked(Builder& b, llvm::SmallVector<llvm::Value*, 5> args,
                        const IntrinsicByLanes& intrinsics, llvm::Value* kept, bool rounds);

class Numbers {
 public:
  Numbers(Builder& builder, const CpuFeatures& features) : b_(builder), features_(features) {}

  const CpuFeatures& features() const { return features_; }

  // `lanes` of 1 is a scalar.
  llvm::Type* RegisterType(DType dtype, int lanes = 1) const;
  llvm::Type* MemoryType(DType dtype, int lanes = 1) const;
  llvm::Value* FromMemory(DType dtype, llvm::Value* stored) const;
  llvm::Value* ToMemory(DType dtype, llvm::Value* value) const;
  // Rounds floats to bf16 as memory has it, by one instruction, which treats subnormal numbers as zero.
  bool CanRoundToBF16(int lanes) const;
  llvm::Value* RoundedToBF16(llvm::Value* floats) const;  // REQUIRES: CanRoundToBF16 of its lanes
  llvm::Value* Constant(DType dtype, Scalar value) const;

  llvm::Value* Unary(Op op, DType dtype, llvm::Value* a) const;
  llvm::Value* Binary(Op op, DType dtype, llvm::Value* a, llvm::Value* b) const;
  // Divides the lanes of `a` by one number, within 1.5 units in the last place. It multiplies by the
  // reciprocal, which is hoisted out of loops in which the divisor does not change. REQUIRES: `dtype` is a
  // float of at most 32 bits.
  llvm::Value* DivideByScalar(DType dtype, llvm::Value* a, llvm::Value* divisor) const;
  llvm::Value* DivideByRoot(llvm::Value* a, llvm::Value* b) const;
  llvm::Value* Compare(Op op, DType operand, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* Cast(DType to, DType from, llvm::Value* value) const;

 private:
  // `element`, or a vector of it with as many lanes as `value`: maybe one, with which reductions end.
  static llvm::Type* Like(llvm::Value* value, llvm::Type* element) {
    return value->getType()->getWithNewType(element);
  }
  // Bits of `like`'s integer type.
  static llvm::Constant* Int(llvm::Value* like, uint64_t bits) {
    return llvm::ConstantInt::get(like->getType(), bits);
  }
  // Float bits as i32, and back.
  llvm::Value* AsInt(llvm::Value* f) const { return b_.CreateBitCast(f, Like(f, b_.getInt32Ty())); }
  llvm::Value* AsFloat(llvm::Value* bits) const {
    return b_.CreateBitCast(bits, Like(bits, b_.getFloatTy()));
  }

  // The bits of a float, rounded at the last `dropped` ones, ties to even. Those are arbitrary in the result.
  llvm::Value* RoundedAt(llvm::Value* bits, int dropped) const;
  // Rounds a float to the nearest value of a narrower type; other types are returned unchanged.
  llvm::Value* Round(DType dtype, llvm::Value* f) const;
  llvm::Value* RoundBF16(llvm::Value* f) const;
  // float -> i16 or i8, and back; of narrow types other than bf16.
  llvm::Value* NarrowBits(DType dtype, llvm::Value* f) const;
  llvm::Value* FromNarrowBits(DType dtype, llvm::Value* narrow) const;
  llvm::Value* NarrowDouble(DType to, llvm::Value* d) const;
  llvm::Value* IntToFloat(DType to, DType from, llvm::Value* i) const;
  llvm::Value* FloatToInt(DType to, llvm::Value* f) const;

  llvm::Value* FloatUnary(Op op, DType dtype, llvm::Value* a) const;
  llvm::Value* Rsqrt(llvm::Value* a) const;
  llvm::Value* RsqrtEstimate(llvm::Value* a) const;
  llvm::Value* Extremum(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* FloatBinary(Op op, DType dtype, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* IntBinary(Op op, DType dtype, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* BoolBinary(Op op, llvm::Value* a, llvm::Value* b) const;
  // Quotient and remainder.
  std::pair<llvm::Value*, llvm::Value*> FloorDivide(DType dtype, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* TF32(llvm::Value* f) const;

  Builder& b_;
  const CpuFeatures features_;
};

}  // namespace mycc
