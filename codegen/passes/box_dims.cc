#include "codegen/passes/box_dims.h"

#include <algorithm>
#include <iterator>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/print.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

constexpr int64_t kMaxBox = 256, kMaxStep = 8, kMaxRank = 5;

// Neighbouring dimensions of the tensor that one index runs through.
struct Run {
  Expr index;
  int64_t size, stride;
};

std::vector<const For*> LoopsOf(const Expr& index, const std::vector<const For*>& loops) {
  std::vector<const For*> used;
  for (const For* loop : loops) {
    if (UsesVar(index, loop->var.get())) used.push_back(loop);
  }
  return used;
}

bool StepsEvenly(const Expr& index, const std::vector<const For*>& loops) {
  return std::all_of(loops.begin(), loops.end(), [&](const For* loop) {
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
        return Refusal("rows of ", global.name, " lie apart; expected one after the other");
      run = {Simplify(run.index * inner.size + inner.index), run.size * inner.size, inner.stride};
    }
    runs.push_back(std::move(run));
  }
  if (!StepsEvenly(runs.back().index, loops))
    return Refusal("index ", PrintExpr(indices.front()), " does not step evenly with its loops");
  std::reverse(runs.begin(), runs.end());
  return runs;
}

absl::StatusOr<LoopDim> OneLoop(const Run& run, const For* loop) {
  if (loop == nullptr) return LoopDim{nullptr, {run.index, 1, 1, run.size, run.stride}};
  const LinearInVar linear = *SplitLinear(run.index, loop->var.get());
  const int64_t extent = *ConstExtent(*loop), step = linear.coefficient;
  if (step < 1 || step > kMaxStep)
    return Refusal("index ", PrintExpr(run.index), " steps by ", step, "; expected 1 to ", kMaxStep);
  if ((extent - 1) * step + 1 > kMaxBox)
    return Refusal("a box of ", extent, " steps of ", step, "; at most ", kMaxBox, " elements");
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
      return Refusal("index ", PrintExpr(run.index), " steps by ", linear.coefficient, " for ", extent,
                     " iterations of loop ", loop->var->name);
    dims.push_back({loop, {IntConst(0), extent, 1, extent, linear.coefficient * run.stride}, true});
    begin = linear.rest;
  }
  const auto by_stride = [](const LoopDim& a, const LoopDim& b) { return a.dim.stride < b.dim.stride; };
  LoopDim& widest = *std::max_element(dims.begin(), dims.end(), by_stride);
  LoopDim& narrowest = *std::min_element(dims.begin(), dims.end(), by_stride);
  const int64_t step = widest.dim.stride / run.stride;
  const auto [first, rest] = DivideBegin(ToLinear(Simplify(begin)), step);
  const auto range = RangeOf(rest);
  if (!range || range->min < 0 || (range->max > 0 && narrowest.dim.stride != run.stride))
    return Refusal("index ", PrintExpr(run.index), " does not begin at a step of its loops");
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
    const auto along =
        std::count_if(dims.begin(), dims.end(), [&](const LoopDim& dim) { return dim.loop == loop; });
    if (along == 0 && *ConstExtent(*loop) > 1)
      return Refusal("loop ", loop->var->name, " does not step through ", global);
    if (along > 1) return Refusal("loop ", loop->var->name, " steps through two dimensions of ", global);
  }
  return absl::OkStatus();
}

}  // namespace

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
    return Refusal(global.name, " has more than ", kMaxRank, " dimensions to step through");
  MYCC_RETURN_IF_ERROR(CheckLoops(loops, dims, global.name));
  return dims;
}

std::vector<BulkBox::Dim> InOrderOf(const std::vector<const For*>& loops, const std::vector<LoopDim>& dims) {
  std::vector<LoopDim> along;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(along),
               [](const LoopDim& dim) { return dim.loop != nullptr; });
  const auto place = [&](const LoopDim& dim) { return std::find(loops.begin(), loops.end(), dim.loop); };
  std::sort(along.begin(), along.end(),
            [&](const LoopDim& a, const LoopDim& b) { return place(a) < place(b); });
  std::vector<BulkBox::Dim> ordered;
  auto next = along.begin();
  for (const LoopDim& dim : dims) ordered.push_back(dim.loop == nullptr ? dim.dim : (next++)->dim);
  return ordered;
}

}  // namespace mycc
