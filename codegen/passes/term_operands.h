// The operands of ordinary arithmetic in registers, for threads_pipeline.cc: a nest that sums up products of
// elements in shared memory, taken apart into nests that load the operands of a term, and one that multiplies
// them. The operands of the next term can then be loaded while a term is multiplied, also where the next term
// is behind a barrier.
//
//   thread a: unroll k in 8: unroll i, vector j: acc[a,i,j] += s[k,a*16+i] * t[k,j]
//
//   loads(k):     thread a: unroll i: x[k%2,a,i] = s[k,a*16+i]
//                 thread a: vector j: y[k%2,a,j] = t[k,j]
//   products(k):  thread a: unroll i, vector j: acc[a,i,j] += x[k%2,a,i] * y[k%2,a,j]
//
// The same double buffering of fragments as in CUTLASS's SIMT products. Pure functions; values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

class TermOperands {
 public:
  // Nullopt where a thread has fewer than 128 sums, or needs more than 32 operands for a term; where the
  // number of terms is odd, or their loop is not unrolled; where the nest is more than loops around one
  // store, or loads under a condition.
  static std::optional<TermOperands> Of(const Stmt& nest, const std::vector<Buffer>& tiles);

  int64_t terms() const { return terms_->var->extent; }
  // Nests of their own, whose loops' names have the suffix. Loads reads the tiles, as the nest does.
  Stmt Loads(const Expr& term, const std::string& suffix) const;
  Stmt Products(const Expr& term, const std::string& suffix) const;
  // The registers of two terms, around the loop over the steps.
  Stmt Around(Stmt body) const;

 private:
  struct Operand {
    Expr load;
    Buffer registers;               // [term % 2, the loops]
    std::vector<const For*> loops;  // of threads, and those inside that the element depends on
  };

  TermOperands() = default;
  bool AddOperand(const Expr& load);
  // The element of an operand that a term needs.
  static std::vector<Expr> Place(const Operand& operand, const Expr& term);

  std::vector<const For*> threads_, inner_;
  const For* terms_ = nullptr;
  const Store* store_ = nullptr;
  std::vector<Operand> operands_;
};

}  // namespace mycc
