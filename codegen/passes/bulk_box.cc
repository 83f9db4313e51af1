// Recognizes a copy's loop nest as a box, or refuses it with the reason.
#include "codegen/passes/bulk_box.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/print.h"
#include "codegen/passes/box_dims.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

constexpr int64_t kAlignment = 16;

template <typename... Parts>
absl::Status Refuse(const Parts&... why) {
  return Refusal("the copy engine cannot do this copy: ", why...);
}

// The parts of a copy's body.
struct CopyNest {
  std::vector<const For*> loops;  // outermost first
  const Store* store = nullptr;
  const ExprNode* load = nullptr;
  std::vector<Expr> conditions;  // an element is copied if all hold
};

absl::StatusOr<CopyNest> CopyNestOf(const Stmt& body) {
  Stmt inner;
  CopyNest nest{LoopsOfNest(body, &inner)};
  for (const For* loop : nest.loops) {
    if (!ConstExtent(*loop)) return Refuse("loop ", loop->var->name, " has no constant extent");
  }
  if (const If* guard = DynAs<If>(inner); guard != nullptr && !guard->otherwise) {
    SplitConjunction(guard->condition, &nest.conditions);
    inner = guard->then;
  }
  nest.store = DynAs<Store>(inner);
  if (nest.store == nullptr) return Refuse("it is not a nest of loops around one store");
  Expr value = nest.store->value;
  if (value->op == Op::kSelect && value->args[2]->op == Op::kConst) {
    SplitConjunction(value->args[0], &nest.conditions);
    value = value->args[1];
  }
  if (value->op != Op::kLoad) return Refuse("it computes its value");
  nest.load = value.get();
  return nest;
}

// The tile's indices are the loops' variables in order, after the indices that select the tile (a ring's
// slot).
absl::Status MatchShared(const CopyNest& nest, const std::vector<Expr>& indices, BulkBox* box) {
  size_t next = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const bool of_loop = std::any_of(nest.loops.begin(), nest.loops.end(),
                                     [&](const For* loop) { return UsesVar(indices[d], loop->var.get()); });
    if (!of_loop) {
      if (next == 0) box->shared_prefix.push_back(indices[d]);
      if (next == 0 || box->shared->shape[d] == 1) continue;
    } else if (next < nest.loops.size() && indices[d]->op == Op::kVar &&
               indices[d]->var == nest.loops[next]->var &&
               *ConstExtent(*nest.loops[next]) == box->shared->shape[d]) {
      ++next;
      continue;
    }
    return Refuse(box->shared->name, " is not copied whole, in its own order");
  }
  const size_t prefix = box->shared_prefix.size();
  const Layout& layout = box->shared->layout;
  const Layout tile{{layout.dims.begin() + static_cast<ptrdiff_t>(prefix), layout.dims.end()},
                    layout.swizzle};
  const std::vector<int64_t> shape(box->shared->shape.begin() + static_cast<ptrdiff_t>(prefix),
                                   box->shared->shape.end());
  if (tile != SharedMemoryLayout(shape, DTypeBytes(box->shared->dtype), 0, box->shared->swizzle_bytes()))
    return Refuse(absl::StrCat(box->shared->name, " lies as ", tile.Text(),
                               "; the engine writes a box row by row, or in swizzled panels"));
  if (next == nest.loops.size()) return absl::OkStatus();
  return Refuse(box->shared->name, " has fewer dimensions than the copy has loops");
}

absl::Status CheckAlignment(const BulkBox& box) {
  const int64_t element = DTypeBytes(box.global->dtype);
  if (box.dims.back().stride != 1 || box.dims.back().step != 1)
    return Refuse("its last dimension is not contiguous");
  for (size_t d = 0; d + 1 < box.dims.size(); ++d) {
    const int64_t bytes = box.dims[d].stride * element;
    if (bytes % kAlignment != 0)
      return Refuse("rows of ", box.global->name, " are ", bytes, " bytes apart; expected a multiple of ",
                    kAlignment);
  }
  if (box.dims.back().extent * element % kAlignment != 0)
    return Refuse("rows of the tile are ", box.dims.back().extent * element,
                  " bytes; expected a multiple of ", kAlignment);
  return absl::OkStatus();
}

// Whether elements that fail the condition (those where `condition` is negative) are beyond an edge (where
// `edge` is negative): edge == k * condition + rest, with rest < k. So is a group of tiles beyond the last
// one.
bool IsBeyond(const Linear& condition, const Linear& edge) {
  if (condition.terms.empty()) return false;
  const int64_t of_condition = condition.terms.front().second;
  for (const auto& [atom, coefficient] : edge.terms) {
    const int64_t k = coefficient / of_condition;
    if (k < 1 || coefficient % of_condition != 0) continue;
    const auto rest = RangeOf(Simplify(FromLinear(edge) - FromLinear(condition) * k));
    if (rest && rest->max < k) return true;
  }
  return false;
}

// Whether the condition is an edge of the dimension, or holds within its edges. A window's dimension ends
// where the condition says, if that is earlier.
bool IsEdge(const Expr& margin, LoopDim* along) {
  int64_t& size = along->dim.size;
  for (const Expr& edge : {along->place, IntConst(size - 1) - along->place}) {
    if (IsZero(Simplify(margin - edge)) || IsBeyond(ToLinear(margin), ToLinear(edge))) return true;
  }
  int64_t last = 0;
  if (!along->is_window || !IsConstInt(Simplify(margin + along->place), &last)) return false;
  if (last < 0 || last >= size) return false;
  size = last + 1;
  return true;
}

// The conditions must be the tensor's edges, or hold within them: beyond them the engine reads zeros and
// writes nothing.
absl::Status MatchConditions(const CopyNest& nest, const Buffer& global, std::vector<LoopDim>* dims) {
  for (LoopDim& along : *dims) {
    const BulkBox::Dim& dim = along.dim;
    along.place =
        along.loop == nullptr ? dim.begin : Simplify(dim.begin + VarRef(along.loop->var) * dim.step);
  }
  for (const Expr& condition : nest.conditions) {
    if (IsConstInt(condition, int64_t{1})) continue;
    const Expr margin = MarginOf(condition);
    const auto edge = std::find_if(dims->begin(), dims->end(),
                                   [&](LoopDim& along) { return margin && IsEdge(margin, &along); });
    if (edge == dims->end())
      return Refuse("the condition ", PrintExpr(condition), " is not an edge of ", global->name);
    edge->has_edge = true;
  }
  // The size of a window's dimension is counted from the loops beside it, and not the tensor's own.
  for (const LoopDim& along : *dims) {
    const auto range = RangeOf(along.place);
    const bool is_inside = range && range->min >= 0 && range->max < along.dim.size;
    if (along.is_window && !along.has_edge && !is_inside)
      return Refuse("place ", PrintExpr(along.place), " of a window is beyond its ", along.dim.size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BulkBox> BulkBoxOf(const Stmt& body) {
  MYCC_ASSIGN_OR_RETURN(const CopyNest nest, CopyNestOf(body));
  BulkBox box;
  box.to_shared = nest.store->buffer->scope == Scope::kShared;
  box.shared = box.to_shared ? nest.store->buffer : nest.load->buffer;
  box.global = box.to_shared ? nest.load->buffer : nest.store->buffer;
  if (box.shared->scope != Scope::kShared || box.global->scope == Scope::kShared)
    return Refuse("it does not go between global and shared memory");
  const std::vector<Expr>& shared = box.to_shared ? nest.store->indices : nest.load->args;
  const std::vector<Expr>& global = box.to_shared ? nest.load->args : nest.store->indices;
  MYCC_RETURN_IF_ERROR(MatchShared(nest, shared, &box));
  absl::StatusOr<std::vector<LoopDim>> dims = DimsAlongLoops(nest.loops, global, *box.global);
  if (!dims.ok()) return Refuse(dims.status().message());
  MYCC_RETURN_IF_ERROR(MatchConditions(nest, box.global, &*dims));
  box.dims = InOrderOf(nest.loops, *dims);
  MYCC_RETURN_IF_ERROR(CheckAlignment(box));
  return box;
}

int64_t BytesOfBox(const BulkBox& box) {
  int64_t bytes = DTypeBytes(box.shared->dtype);
  for (const BulkBox::Dim& dim : box.dims) bytes *= dim.extent;
  return bytes;
}

}  // namespace mycc
