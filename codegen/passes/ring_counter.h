// Counts the steps of a ring through loops of computed lengths, in each role by itself:
//
//                                     alloc counter; counter = 0
//   for tile: for k in length:   ->   for tile: before = counter
//     step                                      for k in length: step number before + k
//                                               counter = before + length
//
// Pure. For block_work.cc and bulk_pipeline.cc only.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/ir/stmt.h"

namespace mycc {

class RingCounter {
 public:
  // `most`: an upper bound of the steps in all tiles of a block.
  RingCounter(const std::string& name, int64_t most);
  // The number of steps before the loop, for use in a loop that Counting returned.
  Expr before() const { return VarRef(before_); }
  // The loop, after which the counter has grown by its length; a negative length is 0.
  Stmt Counting(Stmt loop, const Expr& length) const;
  // The role, with its counter at 0 before it.
  Stmt Around(Stmt role) const;

 private:
  const Buffer counter_;
  const Var before_;
};

}  // namespace mycc
