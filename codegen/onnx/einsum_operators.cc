// Einsum. Diagonals are taken and axes of one operand alone are summed first; then operands are contracted
// two by two, the smallest result first.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/operators.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// A letter, or kEllipsis plus the distance of an axis of the ellipsis from its last one.
using AxisLabel = int;
using AxisLabels = std::vector<AxisLabel>;
constexpr AxisLabel kEllipsis = 256;

struct Operand {
  Buffer tensor;
  AxisLabels labels;  // one for each axis
};

bool Holds(const AxisLabels& labels, AxisLabel label) {
  return std::ranges::find(labels, label) != labels.end();
}

// The labels of a term; `ellipsis` axes stand for "...", and `has_ellipsis` tells whether it was there.
absl::StatusOr<AxisLabels> LabelsOf(const NodeImport& n, std::string term, int64_t ellipsis,
                                    bool* has_ellipsis) {
  AxisLabels labels;
  *has_ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const bool is_letter = (term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z');
    if (is_letter) {
      labels.push_back(term[i]);
    } else if (term.compare(i, 3, "...") == 0 && !*has_ellipsis) {
      *has_ellipsis = true;
      for (int64_t k = ellipsis; k-- > 0;) labels.push_back(kEllipsis + static_cast<AxisLabel>(k));
      i += 2;
    } else {
      return n.Refuse(
          absl::StrCat("the term `", term, "` of its equation; expected letters, and `...` once"));
    }
  }
  return labels;
}

class EinsumImport {
 public:
  explicit EinsumImport(NodeImport* n) : n_(*n) {}

  absl::StatusOr<Buffer> Run() {
    const std::string equation = absl::StrReplaceAll(n_.String("equation", ""), {{" ", ""}});
    const std::vector<std::string> sides = absl::StrSplit(equation, "->");
    if (sides.size() > 2)
      return n_.Refuse(absl::StrCat("the equation `", equation, "`; expected `->` at most once"));
    MYCC_RETURN_IF_ERROR(ReadOperands(absl::StrSplit(sides[0], ',')));
    MYCC_RETURN_IF_ERROR(ReadResult(sides.size() == 2 ? &sides[1] : nullptr));
    for (Operand& operand : operands_) operand = WithoutDiagonals(operand);
    for (size_t i = 0; i < operands_.size(); ++i)
      operands_[i] = Contracted(operands_[i], nullptr, Kept(operands_[i].labels, i, i));
    while (operands_.size() > 2) ContractCheapestPair();
    const Operand* second = operands_.size() == 2 ? &operands_[1] : nullptr;
    return n_.g().Cast(Contracted(operands_[0], second, result_).tensor, n_.Type(0));
  }

 private:
  absl::Status ReadOperands(const std::vector<std::string>& terms) {
    if (terms.size() != n_.num_inputs()) {
      return n_.Refuse(absl::StrCat("the equation has ", terms.size(),
                                    " terms; expected one for each of the ", n_.num_inputs(), " inputs"));
    }
    for (size_t i = 0; i < terms.size(); ++i) {
      bool has_ellipsis = false;
      MYCC_ASSIGN_OR_RETURN(AxisLabels labels, LabelsOf(n_, terms[i], 0, &has_ellipsis));
      const int64_t ellipsis = n_.Rank(i) - static_cast<int64_t>(labels.size());
      if (ellipsis < 0 || (ellipsis > 0 && !has_ellipsis)) {
        return n_.Refuse(absl::StrCat("the term `", terms[i], "` is for input ", i, ", which is ",
                                      TypeText(n_.In(i)), "; expected a letter for each axis"));
      }
      MYCC_ASSIGN_OR_RETURN(labels, LabelsOf(n_, terms[i], ellipsis, &has_ellipsis));
      ellipsis_ = std::max(ellipsis_, ellipsis);
      for (size_t axis = 0; axis < labels.size(); ++axis)
        MYCC_RETURN_IF_ERROR(AddExtent(labels[axis], n_.Shape(i)[axis]));
      operands_.push_back({n_.In(i), std::move(labels)});
    }
    return absl::OkStatus();
  }

  // Axes of one element are broadcast.
  absl::Status AddExtent(AxisLabel label, int64_t extent) {
    int64_t& known = extents_.emplace(label, extent).first->second;
    if (known == 1) known = extent;
    if (extent == 1 || extent == known) return absl::OkStatus();
    return n_.Refuse(absl::StrCat("an axis has ", known, " and ", extent, " elements; expected one extent"));
  }

  // Without a result's term: the ellipsis, and the letters that occur once, in their order.
  absl::Status ReadResult(const std::string* term) {
    if (term != nullptr) {
      bool has_ellipsis = false;
      MYCC_ASSIGN_OR_RETURN(result_, LabelsOf(n_, *term, ellipsis_, &has_ellipsis));
    } else {
      std::map<AxisLabel, int> counts;
      for (const Operand& operand : operands_) {
        for (const AxisLabel label : operand.labels) ++counts[label];
      }
      for (int64_t k = ellipsis_; k-- > 0;) result_.push_back(kEllipsis + static_cast<AxisLabel>(k));
      for (const auto& [label, count] : counts) {
        if (label < kEllipsis && count == 1) result_.push_back(label);
      }
    }
    std::vector<int64_t> shape;
    for (size_t i = 0; i < result_.size(); ++i) {
      const bool is_new = std::find(result_.begin(), result_.begin() + i, result_[i]) == result_.begin() + i;
      if (!is_new || !extents_.count(result_[i]))
        return n_.Refuse("the equation's result; expected letters of its terms, each at most once");
      shape.push_back(extents_[result_[i]]);
    }
    return ExpectSoundShape(n_, "gives", shape);
  }

  Operand WithoutDiagonals(const Operand& operand) {
    Operand result{operand.tensor, {}};
    std::vector<int64_t> shape;
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const AxisLabel label = operand.labels[i];
      if (Holds(result.labels, label)) continue;
      int64_t extent = 1;
      for (size_t k = i; k < operand.labels.size(); ++k) {
        if (operand.labels[k] == label && operand.tensor->shape[k] != 1) extent = operand.tensor->shape[k];
      }
      result.labels.push_back(label);
      shape.push_back(extent);
    }
    if (result.labels.size() == operand.labels.size()) return operand;
    result.tensor =
        n_.g().Map(shape, [&](const Axes& axes) { return ElementOf(operand, result.labels, axes); });
    return result;
  }

  // The labels of operands `first` and `second` that others or the result need, in the order of `labels`.
  AxisLabels Kept(const AxisLabels& labels, size_t first, size_t second) const {
    AxisLabels kept;
    for (const AxisLabel label : labels) {
      bool is_needed = Holds(result_, label);
      for (size_t i = 0; i < operands_.size(); ++i)
        is_needed |= i != first && i != second && Holds(operands_[i].labels, label);
      if (is_needed && !Holds(kept, label)) kept.push_back(label);
    }
    return kept;
  }

  AxisLabels KeptOfPair(size_t first, size_t second) const {
    AxisLabels labels = operands_[first].labels;
    labels.insert(labels.end(), operands_[second].labels.begin(), operands_[second].labels.end());
    return Kept(labels, first, second);
  }

  void ContractCheapestPair() {
    size_t best_first = 0, best_second = 1;
    double least = -1;
    for (size_t first = 0; first < operands_.size(); ++first) {
      for (size_t second = first + 1; second < operands_.size(); ++second) {
        double elements = 1;
        for (const AxisLabel label : KeptOfPair(first, second))
          elements *= static_cast<double>(extents_.at(label));
        if (least >= 0 && elements >= least) continue;
        least = elements;
        best_first = first;
        best_second = second;
      }
    }
    const AxisLabels kept = KeptOfPair(best_first, best_second);
    operands_[best_first] = Contracted(operands_[best_first], &operands_[best_second], kept);
    operands_.erase(operands_.begin() + static_cast<int64_t>(best_second));
  }

  // The element at the axes of these labels.
  static Expr ElementOf(const Operand& operand, const AxisLabels& labels, const Axes& axes) {
    Axes at;
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const size_t axis = std::ranges::find(labels, operand.labels[i]) - labels.begin();
      at.push_back(operand.tensor->shape[i] == 1 ? IntConst(0) : axes[axis]);
    }
    return Load(operand.tensor, std::move(at));
  }

  // The sum of products over the labels that are not kept; of elements alone without a second operand.
  Operand Contracted(const Operand& first, const Operand* second, const AxisLabels& kept) {
    if (second == nullptr && first.labels == kept) return first;
    AxisLabels labels = kept;
    std::vector<int64_t> reduced;
    for (const Operand* operand : {&first, second}) {
      for (size_t i = 0; operand != nullptr && i < operand->labels.size(); ++i) {
        if (Holds(labels, operand->labels[i])) continue;
        labels.push_back(operand->labels[i]);
        reduced.push_back(ExtentIn(first, second, labels.back()));
      }
    }
    const std::vector<int64_t> shape = ShapeOf(first, second, kept);
    const bool is_move = second == nullptr && reduced.empty();
    const auto wide = [&](const Expr& e) {
      return !is_move && IsNarrowFloat(e->dtype) ? MakeCast(DType::kF32, e) : e;
    };
    const auto term = [&](const Axes& axes, const Axes& reduce_axes) {
      Axes all = axes;
      all.insert(all.end(), reduce_axes.begin(), reduce_axes.end());
      const Expr left = wide(ElementOf(first, labels, all));
      return second == nullptr ? left : left * wide(ElementOf(*second, labels, all));
    };
    if (reduced.empty()) return {n_.g().Map(shape, [&](const Axes& axes) { return term(axes, {}); }), kept};
    return {n_.g().Reduce(ReduceOp::kSum, shape, reduced, term), kept};
  }

  static int64_t ExtentIn(const Operand& first, const Operand* second, AxisLabel label) {
    int64_t extent = 1;
    for (const Operand* operand : {&first, second}) {
      for (size_t i = 0; operand != nullptr && i < operand->labels.size(); ++i) {
        if (operand->labels[i] == label && operand->tensor->shape[i] != 1) extent = operand->tensor->shape[i];
      }
    }
    return extent;
  }

  static std::vector<int64_t> ShapeOf(const Operand& first, const Operand* second, const AxisLabels& labels) {
    std::vector<int64_t> shape;
    for (const AxisLabel label : labels) shape.push_back(ExtentIn(first, second, label));
    return shape;
  }

  NodeImport& n_;
  std::vector<Operand> operands_;
  AxisLabels result_;
  std::map<AxisLabel, int64_t> extents_;
  int64_t ellipsis_ = 0;  // axes that the longest ellipsis stands for
};

absl::Status Einsum(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(std::max<size_t>(n.num_inputs(), 1)));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, n.num_inputs() - 1, kTakesNumbers));
  MYCC_ASSIGN_OR_RETURN(const Buffer result, EinsumImport(&n).Run());
  n.Set(0, result, n.Typed(0).type);
  return absl::OkStatus();
}

constexpr Operator kEinsumTable[] = {
    {"Einsum", Einsum, 12},
};

}  // namespace

std::span<const Operator> EinsumOperators() { return kEinsumTable; }

}  // namespace mycc::onnx
