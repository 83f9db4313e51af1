// Emits the products of one CPU instruction (target/instructions.h) in each lane: a group of elements of a,
// broadcast to all lanes, times the lane's own group of b, added to the lane's sum. Every variant is exact
// for integers, and rounds floats at most once for each product and sum. Thread rule: one owner; emits at the
// builder's insertion point.
#pragma once

#include "codegen/llvm/numbers.h"
#include "codegen/target/instructions.h"

namespace mycc {

class LaneProducts {
 public:
  // A row of class kVector, or of kTile: the remainder of a tile's depth is computed in lanes.
  LaneProducts(Builder& builder, const Numbers& numbers, const Instruction& row, DType a, DType b,
               DType accumulator)
      : b_(builder),
        numbers_(numbers),
        kind_(row.lanes),
        group_(row.group),
        a_type_(a),
        b_type_(b),
        accumulator_(accumulator) {}

  int group() const { return group_; }
  // The fewest lanes that the instruction exists for.
  int least_lanes() const { return kind_ == LaneProduct::kMultiplyAdd ? 1 : 4; }

  // Broadcasts a stored group of a to all lanes. The group is an integer of its bits (kMultiplyAdd: the
  // element's memory type).
  llvm::Value* Broadcast(llvm::Value* stored, int lanes) const;
  // Groups of b, one for each lane, from a vector of such integers. Elements from `valid` on in each group
  // become zero, so that their products are zero.
  llvm::Value* Row(llvm::Value* stored, int valid) const;
  llvm::Value* MultiplyAdd(llvm::Value* broadcast, llvm::Value* row, llvm::Value* sum) const;

  // The memory type of a group of a, or of `lanes` groups of b.
  llvm::Type* StoredType(DType dtype, int lanes = 1) const;

 private:
  llvm::Value* Int8Dot(llvm::Value* sum, llvm::Value* unsigned_bytes, llvm::Value* signed_bytes) const;
  llvm::Value* QuadsOfOneSign(llvm::Value* sum, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* SumsOfTwo(llvm::Value* a, llvm::Value* b) const;
  // Groups as the instruction takes them: an element in the accumulator's type, two bytes of each lane as
  // integers of 16 bits, two bf16, or their bits.
  llvm::Value* Operand(DType dtype, llvm::Value* stored) const;

  Builder& b_;
  const Numbers& numbers_;
  LaneProduct kind_;
  int group_;
  DType a_type_, b_type_, accumulator_;
};

}  // namespace mycc
