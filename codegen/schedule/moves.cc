#include "codegen/schedule/moves.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"

namespace mycc {
namespace {

// An index: `outer` plus an offset in [low, high] while the inner variables run.
struct Span {
  Expr outer;
  int64_t low, high;
};

std::optional<Span> SpanOf(const Expr& index, const VarSet& inner) {
  const Linear linear = ToLinear(index);
  for (const auto& [atom, coefficient] : linear.terms) {
    if (HasLoad(atom) || (atom->op != Op::kVar && UsesAnyOf(atom, inner))) return std::nullopt;
  }
  const std::optional<FreeAndRange> split = SplitByVars(linear, inner);
  if (!split) return std::nullopt;
  return Span{FromLinear({0, split->free.terms}), linear.constant + split->range.min,
              linear.constant + split->range.max};
}

DimRegion CoverDim(const std::vector<Access>& accesses, size_t dim, const VarSet& inner, int64_t extent) {
  const DimRegion whole{IntConst(0), extent, true};
  std::optional<Span> cover;
  for (const Access& access : accesses) {
    const std::optional<Span> span = SpanOf(access[dim], inner);
    if (!span || (cover && !StructurallyEqual(cover->outer, span->outer))) return whole;
    if (!cover) cover = span;
    cover->low = std::min(cover->low, span->low);
    cover->high = std::max(cover->high, span->high);
  }
  if (!cover || cover->high - cover->low + 1 >= extent) return whole;
  const Expr base = cover->low < 0 ? cover->outer - (-cover->low) : cover->outer + cover->low;
  return DimRegion{base, cover->high - cover->low + 1, false};
}

// Whether an iteration writes a contiguous run of elements along one dimension: each inner loop's step, from
// the shortest, is at most the length that the shorter ones cover. A run of the whole extent must begin at 0.
bool WritesOneRun(const Expr& index, const VarSet& inner, bool whole) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // each with its number of iterations
  bool moves = false;
  for (const auto& [atom, coefficient] : ToLinear(index).terms) {
    if (atom->op == Op::kVar && atom->var->extent == 1) continue;
    const bool varies = UsesAnyOf(atom, inner);
    if (varies && atom->op != Op::kVar) return false;
    if (varies) steps.emplace_back(coefficient, atom->var->extent);
    moves |= !varies;
  }
  std::ranges::sort(steps);
  int64_t reach = 0;
  for (const auto& [step, count] : steps) {
    if (step < 1 || step > reach + 1) return false;
    reach += step * (count - 1);
  }
  return !(whole && moves);
}

}  // namespace

std::vector<Access> ReadsUnder(const Stmt& stmt, const Buffer& buffer) {
  std::vector<Access> accesses;
  for (const Block* block : BlocksUnder(stmt)) {
    if (!Reads(*block, buffer)) continue;
    const VarMap bindings = BindingsOf(*block);
    block->ForEachValue([&](const Expr& value) {
      ForEachLoad(value, [&](const ExprNode& load) {
        if (load.buffer == buffer) accesses.push_back(Substitute(load.args, bindings));
      });
    });
  }
  return accesses;
}

std::vector<DimRegion> CoveringBox(const std::vector<Access>& accesses, const VarSet& inner,
                                   const std::vector<int64_t>& shape) {
  std::vector<DimRegion> box;
  for (size_t dim = 0; dim < shape.size(); ++dim) box.push_back(CoverDim(accesses, dim, inner, shape[dim]));
  return box;
}

absl::Status CheckCarriesOneKind(const Block& block, const For& loop) {
  const bool carries_axis = std::ranges::any_of(block.iters, [&](const IterVar& iter) {
    return !iter.reduce && !IsGuard(block, iter) && UsesVar(iter.binding, loop.var.get());
  });
  if (!carries_axis || !CarriesReduction(block, loop)) return absl::OkStatus();
  return Refusal("loop ", loop.var->name, " carries both a reduction and an axis of ", block.name);
}

bool WritesAtItsAxes(const Block& block) {
  if (block.out->scope == Scope::kAccumulator) return false;
  return std::ranges::all_of(block.indices, [&](const Expr& index) {
    return index->op == Op::kVar &&
           std::ranges::any_of(block.iters, [&](const IterVar& iter) { return iter.var == index->var; });
  });
}

std::optional<VarMap> ItersAt(const Block& writer, const std::vector<Expr>& index) {
  VarMap values;
  for (size_t d = 0; d < index.size(); ++d) {
    for (const IterVar& iter : writer.iters) {
      if (!UsesVar(writer.indices[d], iter.var.get())) continue;
      const auto linear = SplitLinear(writer.indices[d], iter.var.get());
      if (!linear || linear->coefficient != 1) return std::nullopt;
      values[iter.var.get()] = Simplify(index[d] - linear->rest);
    }
  }
  return values;
}

std::vector<const For*> NestOf(const Path& path) {
  std::vector<const For*> loops;
  for (size_t node = path.nodes.size() - 1; node-- > 0;) {
    const For* loop = DynAs<For>(path.nodes[node]);
    if (loop == nullptr) break;
    loops.insert(loops.begin(), loop);
  }
  return loops;
}

Path NestPath(Path path) {
  path.nodes.resize(path.nodes.size() - NestOf(path).size());
  return path;
}

absl::Status CheckNaive(const Path& path, bool guards_allowed) {
  const Block& block = path.block();
  std::vector<const IterVar*> axes;
  bool naive = WritesAtItsAxes(block);
  for (const IterVar& iter : block.iters) {
    if (!IsGuard(block, iter)) axes.push_back(&iter);
    naive &= guards_allowed || !IsGuard(block, iter);
  }
  const auto uses = [&](const VarNode* var) {
    bool found = false;
    block.ForEachValue([&](const Expr& value) { found |= UsesVar(value, var); });
    return found;
  };
  // The perfect nest around the block consists of the axes' own loops, in order.
  const std::vector<const For*> loops = NestOf(path);
  naive &= loops.size() == axes.size();
  for (size_t i = 0; naive && i < axes.size(); ++i) {
    const Expr& binding = axes[i]->binding;
    naive = binding->op == Op::kVar && binding->var == loops[i]->var &&
            loops[i]->loop_kind == LoopKind::kSerial && !uses(loops[i]->var.get());
  }
  if (naive) return absl::OkStatus();
  return Refusal(block.name,
                 " has been scheduled already; move a block before splitting or moving its own loops");
}

absl::Status CheckCanMove(const Function& function, const Path& block, const Path& to) {
  const auto on_path = [&](const Stmt& stmt) { return std::ranges::find(to.nodes, stmt) != to.nodes.end(); };
  const std::string& name = block.block().name;
  for (size_t i = 0; i + 1 + NestOf(block).size() < block.nodes.size(); ++i) {
    const For* loop = DynAs<For>(block.nodes[i]);
    if (loop == nullptr || on_path(block.nodes[i])) continue;
    return Refusal(name, " is inside loop ", loop->var->name, ", and would move out of it");
  }
  const Buffer& out = block.block().out;
  const absl::StatusOr<Path> alloc = FindAlloc(function, out);
  if (!alloc.ok() || on_path(alloc->target())) return absl::OkStatus();
  return Refusal(out->name, ", which ", name, " writes, does not exist there");
}

absl::Status CheckLastIterationRuns(const For& loop, const Block& block) {
  for (const IterVar& iter : block.iters) {
    const std::optional<Interval> range = RangeOf(iter.binding);
    if (!UsesVar(iter.binding, loop.var.get()) || (range && range->max < iter.var->extent)) continue;
    return Refusal("loop ", loop.var->name, " overshoots: ", block.name,
                   " may not run in its last iteration");
  }
  return absl::OkStatus();
}

size_t DimOf(const Block& block, const IterVar& iter) {
  const auto named = std::ranges::find(block.indices, iter.var, &ExprNode::var);
  return static_cast<size_t>(named - block.indices.begin());
}

LoopSpec LoopOver(const DimRegion* part, const std::string& name, IterVar* iter) {
  const Var loop = MakeVar(absl::StrCat(name, ".", iter->var->name), part ? part->extent : iter->var->extent);
  iter->binding = part ? part->At(VarRef(loop)) : VarRef(loop);
  return {loop};
}

std::string RenamedLoop(const std::string& loop, const std::string& from, const std::string& to) {
  const bool own = absl::StartsWith(loop, absl::StrCat(from, "."));
  return absl::StrCat(to, own ? loop.substr(from.size()) : absl::StrCat(".", loop));
}

std::vector<Expr> Localize(const std::vector<Expr>& index, const std::vector<DimRegion>& box) {
  std::vector<Expr> local;
  local.reserve(index.size());
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
    copy.iters.push_back({iter, false, box[d].At(VarRef(loop))});
    copy.indices.push_back(VarRef(iter));
  }
  return copy;
}

std::shared_ptr<Block> WritingTile(const Block& block, const std::vector<const For*>& tile,
                                   const std::string& name, Scope scope) {
  auto writer = std::make_shared<Block>(block);
  std::vector<int64_t> shape;
  writer->indices.clear();
  for (const For* loop : tile) {
    shape.push_back(loop->var->extent);
    writer->indices.push_back(VarRef(loop->var));
  }
  writer->out = MakeBuffer(name, block.out->dtype, std::move(shape), scope);
  return writer;
}

TileCopy MakeTileCopy(const Block& block, const std::vector<const For*>& tile, const std::string& name) {
  TileCopy copy;
  VarMap fresh;
  for (const For* loop : tile) {
    const Var var = MakeVar(RenamedLoop(loop->var->name, block.name, name), loop->var->extent);
    fresh[loop->var.get()] = VarRef(var);
    copy.loops.push_back({var});
    copy.local.push_back(VarRef(var));
  }
  for (const IterVar& iter : block.iters) {
    if (iter.reduce || GuardsTerms(block, iter)) continue;
    const Var var = MakeVar(iter.var->name, iter.var->extent);
    fresh[iter.var.get()] = VarRef(var);
    copy.iters.push_back({var, false, Substitute(iter.binding, fresh)});
  }
  copy.global = Substitute(block.indices, fresh);
  return copy;
}

Stmt MakeWriteBack(const Block& block, const Buffer& from, const std::vector<const For*>& tile,
                   const std::string& name) {
  const TileCopy copy = MakeTileCopy(block, tile, name);
  return MakeNest(copy.loops, MakeBlock(name, copy.iters, block.out, copy.global, Load(from, copy.local)));
}

absl::StatusOr<std::vector<DimRegion>> FilledBox(const Block& writer, const VarSet& inner) {
  bool fills = true;
  for (const IterVar& iter : writer.iters)
    fills &= !(IsGuard(writer, iter) && UsesAnyOf(iter.binding, inner));
  const Access write = Substitute(writer.indices, BindingsOf(writer));
  std::vector<DimRegion> box = CoveringBox({write}, inner, writer.out->shape);
  for (size_t d = 0; d < write.size(); ++d) fills &= WritesOneRun(write[d], inner, box[d].whole);
  if (fills) return box;
  return Refusal(writer.name, " does not fill one box of ", writer.out->name,
                 " in an iteration: a split inside the loop overshoots, "
                 "or the loops inside are fused or not the innermost");
}

}  // namespace mycc
