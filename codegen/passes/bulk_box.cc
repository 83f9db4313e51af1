// Recognizes a copy's loop nest as a box, or refuses it with the reason.
#include "codegen/passes/bulk_box.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/print.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

constexpr int64_t kMaxBox = 256, kMaxStep = 8, kMaxRank = 5;
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
  CopyNest nest;
  Stmt inner = body;
  while (const For* loop = DynAs<For>(inner)) {
    if (!ConstExtent(*loop)) return Refuse("loop ", loop->var->name, " has no constant extent");
    nest.loops.push_back(loop);
    inner = loop->body;
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

// The loop of the nest along which an index runs: the index is begin + step * loop.
struct Stepped {
  const For* loop = nullptr;
  int64_t step = 1;
  Expr begin;
};

absl::StatusOr<Stepped> StepOf(const Expr& index, const std::vector<const For*>& loops) {
  Stepped stepped{nullptr, 1, index};
  for (const For* loop : loops) {
    if (!UsesVar(index, loop->var.get())) continue;
    const auto linear = SplitLinear(index, loop->var.get());
    if (stepped.loop != nullptr || !linear)
      return Refuse("index ", PrintExpr(index), " does not step with one loop");
    stepped = Stepped{loop, linear->coefficient, Simplify(linear->rest)};
  }
  return stepped;
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

absl::Status MatchGlobal(const CopyNest& nest, const std::vector<Expr>& indices, BulkBox* box) {
  if (static_cast<int64_t>(indices.size()) > kMaxRank)
    return Refuse(box->global->name, " has more than ", kMaxRank, " dimensions");
  std::vector<const For*> order;
  for (const Expr& index : indices) {
    MYCC_ASSIGN_OR_RETURN(const Stepped stepped, StepOf(index, nest.loops));
    const int64_t extent = stepped.loop != nullptr ? *ConstExtent(*stepped.loop) : 1;
    if (stepped.step < 1 || stepped.step > kMaxStep)
      return Refuse("index ", PrintExpr(index), " steps by ", stepped.step, "; expected 1 to ", kMaxStep);
    if ((extent - 1) * stepped.step + 1 > kMaxBox)
      return Refuse("a box of ", extent, " steps of ", stepped.step, "; at most ", kMaxBox, " elements");
    if (stepped.loop != nullptr) order.push_back(stepped.loop);
    box->begin.push_back(stepped.begin);
    box->extent.push_back(extent);
    box->step.push_back(stepped.step);
  }
  if (box->step.back() != 1) return Refuse("its last dimension is not contiguous");
  std::vector<const For*> loops;
  for (const For* loop : nest.loops) {
    if (*ConstExtent(*loop) > 1 || std::count(order.begin(), order.end(), loop) > 0) loops.push_back(loop);
  }
  if (order != loops)
    return Refuse("the dimensions of ", box->global->name, " and of the tile are in different orders");
  const int64_t element = DTypeBytes(box->global->dtype);
  for (int d = 0; d + 1 < box->global->rank(); ++d) {
    if (box->global->stride(d) * element % kAlignment != 0)
      return Refuse("rows of ", box->global->name, " are ", box->global->stride(d) * element,
                    " bytes apart; expected a multiple of ", kAlignment);
  }
  if (box->extent.back() * element % kAlignment != 0)
    return Refuse("rows of the tile are ", box->extent.back() * element, " bytes; expected a multiple of ",
                  kAlignment);
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

// The conditions must be the tensor's edges, or hold within them: beyond them the engine reads zeros and
// writes nothing.
absl::Status CheckConditions(const CopyNest& nest, const std::vector<Expr>& indices, const Buffer& global) {
  for (const Expr& condition : nest.conditions) {
    if (IsConstInt(condition, int64_t{1})) continue;
    const Expr margin = MarginOf(condition);
    bool is_edge = false;
    for (size_t d = 0; margin && d < indices.size(); ++d) {
      for (const Expr& edge : {indices[d], IntConst(global->shape[d] - 1) - indices[d]})
        is_edge |= IsZero(Simplify(margin - edge)) || IsBeyond(ToLinear(margin), ToLinear(edge));
    }
    if (!is_edge) return Refuse("the condition ", PrintExpr(condition), " is not an edge of ", global->name);
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
  MYCC_RETURN_IF_ERROR(MatchGlobal(nest, global, &box));
  MYCC_RETURN_IF_ERROR(CheckConditions(nest, global, box.global));
  return box;
}

int64_t BytesOfBox(const BulkBox& box) {
  int64_t bytes = DTypeBytes(box.shared->dtype);
  for (const int64_t extent : box.extent) bytes *= extent;
  return bytes;
}

}  // namespace mycc
