#include "codegen/schedule/moves.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mycc {

bool IsGuard(const Block& block, const IterVar& iter) {
  if (iter.reduce) return false;
  return std::none_of(block.indices.begin(), block.indices.end(),
                      [&](const Expr& index) { return UsesVar(index, iter.var.get()); });
}

bool CarriesReduction(const Block& block, const For& loop) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
    return iter.reduce && UsesVar(iter.binding, loop.var.get());
  });
}

bool CarriesAxis(const Block& block, const For& loop) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
    return !iter.reduce && !IsGuard(block, iter) && UsesVar(iter.binding, loop.var.get());
  });
}

bool WritesAtItsAxes(const Block& block) {
  if (block.out->scope == Scope::kAccumulator) return false;
  return std::all_of(block.indices.begin(), block.indices.end(), [&](const Expr& index) {
    return index->op == Op::kVar && std::any_of(block.iters.begin(), block.iters.end(),
                                                [&](const IterVar& iter) { return iter.var == index->var; });
  });
}

absl::Status CheckNaive(const Path& path, bool guards_allowed) {
  const Block& block = path.block();
  std::vector<const IterVar*> axes;
  bool naive = WritesAtItsAxes(block);
  for (const IterVar& iter : block.iters) {
    if (!IsGuard(block, iter)) axes.push_back(&iter);
    naive &= guards_allowed || !IsGuard(block, iter);
  }
  // The innermost loops of the path must be the axes' own, in order.
  for (size_t i = 0; naive && i < axes.size(); ++i) {
    const size_t node = path.nodes.size() - 1 - axes.size() + i;
    const For* loop = node < path.nodes.size() ? DynAs<For>(path.nodes[node]) : nullptr;
    naive = loop != nullptr && axes[i]->binding->op == Op::kVar && axes[i]->binding->var == loop->var &&
            loop->loop_kind == LoopKind::kSerial;
  }
  if (naive) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      block.name, " has been scheduled already; move a block before splitting or moving its own loops"));
}

std::vector<Expr> Localize(const std::vector<Expr>& index, const std::vector<DimRegion>& box) {
  std::vector<Expr> local;
  for (size_t d = 0; d < index.size(); ++d) local.push_back(box[d].whole ? index[d] : index[d] - box[d].base);
  return local;
}

std::vector<int64_t> ExtentsOf(const std::vector<DimRegion>& box) {
  std::vector<int64_t> extents;
  for (const DimRegion& dim : box) extents.push_back(dim.extent);
  return extents;
}

BoxCopy MakeBoxCopy(const std::string& name, const std::vector<DimRegion>& box,
                    const std::vector<int64_t>& shape) {
  BoxCopy copy;
  for (size_t d = 0; d < box.size(); ++d) {
    const Var loop = MakeVar(absl::StrCat(name, ".a", d), box[d].extent);
    const Var iter = MakeVar(absl::StrCat("a", d), shape[d]);
    copy.loops.push_back({loop});
    copy.iters.push_back({iter, false, box[d].whole ? VarRef(loop) : box[d].base + VarRef(loop)});
    copy.indices.push_back(VarRef(iter));
  }
  return copy;
}

}  // namespace mycc
