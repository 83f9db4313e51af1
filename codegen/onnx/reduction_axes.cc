#include "codegen/onnx/reduction_axes.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

constexpr size_t kMostCandidates = 32;

bool AreKnown(const NodeImport& n) {
  if (n.HasAttribute("axes") || !n.Has(1) || n.Value(1) != nullptr) return true;
  const int64_t count = n.In(1)->num_elements();
  return count == 0 || (n.Rank(1) == 1 && count == n.Rank(0));
}

// No axes are all of them, or with noop_with_empty_axes none. Axes that are not known are none or all.
absl::StatusOr<std::vector<int64_t>> KnownAxes(const NodeImport& n) {
  const int64_t rank = n.Rank(0);
  std::vector<int64_t> axes;
  if (n.HasAttribute("axes") || n.Value(1) != nullptr) {
    MYCC_ASSIGN_OR_RETURN(axes, n.IntsOrInput("axes", 1));
  } else if (n.Has(1) && n.In(1)->num_elements() > 0) {
    axes = AxesFrom(0, rank);
  }
  if (axes.empty() && n.Int("noop_with_empty_axes", 0) == 0) axes = AxesFrom(0, rank);
  return n.AxesOf(std::move(axes), rank);
}

// All sets of axes, of the number that the input names, that give the declared shape.
absl::StatusOr<std::vector<ReducedAxes>> Candidates(const NodeImport& n) {
  const std::vector<int64_t>* declared = n.DeclaredShape(0);
  if (declared == nullptr || n.Rank(1) != 1 || !IsInt(n.Type(1))) return n.NotKnown(1);
  const auto rank = static_cast<size_t>(n.Rank(0));
  std::vector<ReducedAxes> candidates;
  for (uint32_t set = 0; set < uint32_t{1} << rank; ++set) {
    if (std::popcount(set) != n.In(1)->num_elements()) continue;
    ReducedAxes reduced{{}, n.Int("keepdims", 1) != 0};
    for (size_t i = 0; i < rank; ++i) {
      if (set >> i & 1) reduced.axes.push_back(static_cast<int64_t>(i));
    }
    if (ResultShape(n.Shape(0), reduced) == *declared) candidates.push_back(reduced);
  }
  if (candidates.empty()) {
    return n.Refuse(absl::StrCat("no ", n.In(1)->num_elements(), " axes of ", TypeText(n.In(0)),
                                 " give the declared shape ", ShapeText(*declared)));
  }
  if (candidates.size() > kMostCandidates) return n.NotKnown(1);
  return candidates;
}

// Whether the input names these axes.
Expr Names(const NodeImport& n, const std::vector<int64_t>& axes) {
  Expr all = BoolConst(true);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Expr named = MakeCast(DType::kI64, Load(n.In(1), {IntConst(static_cast<int64_t>(i))}));
    Expr is_one = BoolConst(false);
    for (const int64_t axis : axes) {
      for (const int64_t number : {axis, axis - n.Rank(0)})
        is_one = MakeBinary(Op::kOr, is_one, MakeBinary(Op::kEq, named, IntConst(number)));
    }
    all = MakeBinary(Op::kAnd, all, is_one);
  }
  return all;
}

}  // namespace

std::vector<int64_t> ResultShape(const std::vector<int64_t>& shape, const ReducedAxes& reduced) {
  if (reduced.keeps_axes) return KeptShape(shape, reduced.axes);
  std::vector<int64_t> result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::ranges::binary_search(reduced.axes, static_cast<int64_t>(i))) result.push_back(shape[i]);
  }
  return result;
}

absl::Status ReduceInput(NodeImport& n, const std::function<Buffer(const ReducedAxes&)>& reduce) {
  const int type = n.Typed(0).type;
  if (AreKnown(n)) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, KnownAxes(n));
    n.Set(0, reduce({axes, n.Int("keepdims", 1) != 0}), type);
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<ReducedAxes> candidates, Candidates(n));
  Buffer result = reduce(candidates.back());
  for (size_t i = candidates.size() - 1; i-- > 0;) {
    const Buffer otherwise = result, candidate = reduce(candidates[i]);
    result = n.g().Map(candidate->shape, [&](const Axes& at) {
      return MakeSelect(Names(n, candidates[i].axes), Load(candidate, at), Load(otherwise, at));
    });
  }
  n.Set(0, result, type);
  return absl::OkStatus();
}

}  // namespace mycc::onnx
