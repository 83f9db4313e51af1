// The masks of tiles in registers: conditions of selects, and of the statements that write registers. Each
// part of a mask's condition has a bound, a condition without the variables of the tile's own loops. Where
// the bound holds, the part holds for all elements of the tile. Pure. For unmask_tiles.cc only.
#pragma once

#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

class TileMasks {
 public:
  // Whether the conditions of statements are masks, too.
  enum class Guards { kStay, kAreMasks };

  // All loops under `root` are a tile's own.
  TileMasks(const Stmt& root, Guards guards);

  // Each bound once. All threads of a block agree on it.
  const std::vector<Expr>& bounds() const { return bounds_; }

  // The root, without the parts of masks whose bounds are among the `held`.
  Stmt Where(const std::vector<Expr>& held) const;

 private:
  // A part of a mask's condition; no bound when no simpler condition is known.
  struct MaskPart {
    Expr condition, bound;
  };
  std::vector<MaskPart> PartsOf(const Expr& condition) const;
  bool IsGuard(const Stmt& stmt) const;
  void Collect(const Expr& condition);
  Expr Remaining(const Expr& condition, const std::vector<Expr>& held) const;

  const Stmt root_;
  const Guards guards_;
  VarSet inner_;
  std::vector<Expr> bounds_;
};

}  // namespace mycc
