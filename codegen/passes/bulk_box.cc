// Recognizes a copy's loop nest as a box, or refuses it with the reason.
#include "codegen/passes/bulk_box.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/print.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

constexpr int64_t kAlignment = 16, kMaxBox = 256, kMaxStep = 8, kMaxRank = 5;

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
    const bool of_loop = std::ranges::any_of(
        nest.loops, [&](const For* loop) { return UsesVar(indices[d], loop->var.get()); });
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
  const auto prefix = static_cast<ptrdiff_t>(box->shared_prefix.size());
  const Layout& layout = box->shared->layout;
  const Layout tile{{layout.dims.begin() + prefix, layout.dims.end()}, layout.swizzle};
  const std::vector<int64_t> shape(box->shared->shape.begin() + prefix, box->shared->shape.end());
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

// A dimension of global memory that a copy's loops step through, as the copy engine can: each with one loop
// (cuTensorMapEncodeTiled: at most 5, boxes of at most 256 elements, strides that may be smaller than what
// they step over).
//
//   for j in 8: for e in 64: .. = x[j + e // 16, e % 16]     ->     j: 8 of x, 16 elements apart
//                                                                   e: 64 neighbours
struct LoopDim {
  const For* loop = nullptr;  // null: one element
  BulkBox::Dim dim;
  bool is_window = false;  // other loops step along the same memory, and its elements overlap
  // Set by MatchConditions.
  Expr place;             // of the loop's element in the dimension: beyond its ends nothing is copied
  bool has_edge = false;  // a condition of the copy is an edge of the dimension
};

// Neighbouring dimensions of the tensor that one index runs through.
struct Run {
  Expr index;
  int64_t size, stride;
};

std::vector<const For*> LoopsOf(const Expr& index, std::vector<const For*> loops) {
  std::erase_if(loops, [&](const For* loop) { return !UsesVar(index, loop->var.get()); });
  return loops;
}

bool StepsEvenly(const Expr& index, const std::vector<const For*>& loops) {
  return std::ranges::all_of(loops, [&](const For* loop) {
    return !UsesVar(index, loop->var.get()) || SplitLinear(index, loop->var.get());
  });
}

// The dimensions of the tensor. One that a loop does not step through evenly (a loop over taps and channels)
// becomes one with the dimension before it.
absl::StatusOr<std::vector<Run>> RunsOf(const std::vector<const For*>& loops,
                                        const std::vector<Expr>& indices, const BufferNode& global) {
  std::vector<Run> runs;
  for (size_t d = indices.size(); d-- > 0;) {
    Run run{indices[d], global.shape[d], global.stride(static_cast<int>(d))};
    if (!runs.empty() && !StepsEvenly(runs.back().index, loops)) {
      const Run inner = runs.back();
      runs.pop_back();
      if (run.stride != inner.size * inner.stride)
        return Refuse("rows of ", global.name, " lie apart; expected one after the other");
      run = {Simplify(run.index * inner.size + inner.index), run.size * inner.size, inner.stride};
    }
    runs.push_back(std::move(run));
  }
  if (!StepsEvenly(runs.back().index, loops))
    return Refuse("index ", PrintExpr(indices.front()), " does not step evenly with its loops");
  std::ranges::reverse(runs);
  return runs;
}

absl::StatusOr<LoopDim> OneLoop(const Run& run, const For* loop) {
  if (loop == nullptr) return LoopDim{nullptr, {run.index, 1, 1, run.size, run.stride}};
  const LinearInVar linear = *SplitLinear(run.index, loop->var.get());
  const int64_t extent = *ConstExtent(*loop), step = linear.coefficient;
  if (step < 1 || step > kMaxStep)
    return Refuse("index ", PrintExpr(run.index), " steps by ", step, "; expected 1 to ", kMaxStep);
  if ((extent - 1) * step + 1 > kMaxBox)
    return Refuse("a box of ", extent, " steps of ", step, "; at most ", kMaxBox, " elements");
  return LoopDim{loop, {Simplify(linear.rest), extent, step, run.size, run.stride}};
}

// The index begin * step + rest, where the loop with the largest step begins at `begin`.
struct Begins {
  Expr first, rest;
};
Begins DivideBegin(const Linear& begin, int64_t step) {
  Linear first, rest;
  for (const auto& [atom, coefficient] : begin.terms) {
    Linear& part = coefficient % step == 0 ? first : rest;
    part.terms.emplace_back(atom, coefficient % step == 0 ? coefficient / step : coefficient);
  }
  rest.constant = (begin.constant % step + step) % step;
  first.constant = (begin.constant - rest.constant) / step;
  return {FromLinear(first), FromLinear(rest)};
}

// A dimension for each loop, with the loop's step as its stride. No element of the box is beyond the tensor.
absl::StatusOr<std::vector<LoopDim>> Windows(const Run& run, const std::vector<const For*>& loops) {
  Expr begin = run.index;
  std::vector<LoopDim> dims;
  for (const For* loop : loops) {
    const LinearInVar linear = *SplitLinear(begin, loop->var.get());
    const int64_t extent = *ConstExtent(*loop);
    if (linear.coefficient < 1 || extent > kMaxBox)
      return Refuse("index ", PrintExpr(run.index), " steps by ", linear.coefficient, " for ", extent,
                    " iterations of loop ", loop->var->name);
    dims.push_back({loop, {IntConst(0), extent, 1, extent, linear.coefficient * run.stride}, true});
    begin = linear.rest;
  }
  const auto by_stride = [](const LoopDim& a, const LoopDim& b) { return a.dim.stride < b.dim.stride; };
  LoopDim& widest = *std::ranges::max_element(dims, by_stride);
  LoopDim& narrowest = *std::ranges::min_element(dims, by_stride);
  const int64_t step = widest.dim.stride / run.stride;
  const auto [first, rest] = DivideBegin(ToLinear(Simplify(begin)), step);
  const auto range = RangeOf(rest);
  if (!range || range->min < 0 || (range->max > 0 && narrowest.dim.stride != run.stride))
    return Refuse("index ", PrintExpr(run.index), " does not begin at a step of its loops");
  widest.dim.begin = first;
  int64_t reach = range->max;  // of the other loops
  for (const LoopDim& other : dims) {
    if (&other != &widest) reach += (other.dim.extent - 1) * other.dim.stride / run.stride;
  }
  widest.dim.size = (run.size - 1 - reach) / step + 1;
  if (&widest != &narrowest) {
    narrowest.dim.begin = rest;
    narrowest.dim.size += range->max;
  }
  return dims;
}

// Every loop steps through one dimension.
absl::Status CheckLoops(const std::vector<const For*>& loops, const std::vector<LoopDim>& dims,
                        const std::string& global) {
  for (const For* loop : loops) {
    const auto along = std::ranges::count(dims, loop, &LoopDim::loop);
    if (along == 0 && *ConstExtent(*loop) > 1)
      return Refuse("loop ", loop->var->name, " does not step through ", global);
    if (along > 1) return Refuse("loop ", loop->var->name, " steps through two dimensions of ", global);
  }
  return absl::OkStatus();
}

// In the order of the tensor's dimensions. Refuses loops that do not step evenly, or step through two
// dimensions.
absl::StatusOr<std::vector<LoopDim>> DimsAlongLoops(const std::vector<const For*>& loops,
                                                    const std::vector<Expr>& indices,
                                                    const BufferNode& global) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Run> runs, RunsOf(loops, indices, global));
  std::vector<LoopDim> dims;
  for (const Run& run : runs) {
    const std::vector<const For*> along = LoopsOf(run.index, loops);
    if (along.size() > 1) {
      MYCC_ASSIGN_OR_RETURN(const std::vector<LoopDim> windows, Windows(run, along));
      dims.insert(dims.end(), windows.begin(), windows.end());
    } else {
      MYCC_ASSIGN_OR_RETURN(LoopDim dim, OneLoop(run, along.empty() ? nullptr : along.front()));
      dims.push_back(std::move(dim));
    }
  }
  if (static_cast<int64_t>(dims.size()) > kMaxRank)
    return Refuse(global.name, " has more than ", kMaxRank, " dimensions to step through");
  MYCC_RETURN_IF_ERROR(CheckLoops(loops, dims, global.name));
  return dims;
}

// The box's dimensions. Those with a loop stand in the order of the loops; one without a loop keeps its
// place.
std::vector<BulkBox::Dim> InOrderOf(const std::vector<const For*>& loops, const std::vector<LoopDim>& dims) {
  std::vector<LoopDim> along = dims;
  std::erase_if(along, [](const LoopDim& dim) { return dim.loop == nullptr; });
  std::ranges::sort(along, {}, [&](const LoopDim& dim) { return std::ranges::find(loops, dim.loop); });
  std::vector<BulkBox::Dim> ordered;
  auto next = along.begin();
  for (const LoopDim& dim : dims) ordered.push_back(dim.loop == nullptr ? dim.dim : (next++)->dim);
  return ordered;
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
    const auto edge =
        std::ranges::find_if(*dims, [&](LoopDim& along) { return margin && IsEdge(margin, &along); });
    if (edge == dims->end())
      return Refuse("the condition ", PrintExpr(condition), " is not an edge of ", global->name);
    edge->has_edge = true;
  }
  // The size of a window's dimension is counted from the loops beside it, and not the tensor's own.
  for (const LoopDim& along : *dims) {
    if (along.is_window && !along.has_edge && !IsWithin(along.place, along.dim.size))
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
  MYCC_ASSIGN_OR_RETURN(std::vector<LoopDim> dims, DimsAlongLoops(nest.loops, global, *box.global));
  MYCC_RETURN_IF_ERROR(MatchConditions(nest, box.global, &dims));
  box.dims = InOrderOf(nest.loops, dims);
  MYCC_RETURN_IF_ERROR(CheckAlignment(box));
  return box;
}

int64_t BytesOfBox(const BulkBox& box) {
  int64_t bytes = DTypeBytes(box.shared->dtype);
  for (const BulkBox::Dim& dim : box.dims) bytes *= dim.extent;
  return bytes;
}

}  // namespace mycc
