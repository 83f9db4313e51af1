// Operators on strings. Each is a library kernel on handles (texts.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/texts.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc::onnx {
namespace {

constexpr int64_t kMostSplits = int64_t{1} << 20;

// Whole elements are stop words; without regard to case, both are compared in small letters. The locale is
// not looked at: letters have the same other case everywhere.
absl::Status StringNormalizer(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTexts(n, 0));
  const std::vector<int64_t>& shape = n.Shape(0);
  const bool is_row = shape.size() == 1 || (shape.size() == 2 && shape[0] == 1);
  if (!is_row)
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(n.Typed(0)), "; expected the shape [C] or [1,C]"));
  const std::string action = n.String("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return n.Refuse(absl::StrCat("case_change_action is `", action, "`; expected NONE, LOWER or UPPER"));
  const int64_t change = action == "NONE"    ? kMyccKeepCase
                         : action == "LOWER" ? kMyccToLowerCase
                                             : kMyccToUpperCase;
  const std::vector<std::string> words = n.Strings("stopwords");
  std::vector<TypedTensor> inputs = {n.Typed(0)};
  if (!words.empty()) {
    MYCC_ASSIGN_OR_RETURN(const TypedTensor stops, TextsOf(n, words, {static_cast<int64_t>(words.size())}));
    inputs.push_back(stops);
  }
  const int axis = static_cast<int>(shape.size()) - 1;
  std::vector<int64_t> most = shape;
  most[axis] = std::max<int64_t>(most[axis], 1);
  MYCC_ASSIGN_OR_RETURN(
      const std::vector<TypedTensor> results,
      CallOnTexts(n.g(), "normalize_texts", {change, n.Int("is_case_sensitive", 0), words.empty() ? 0 : 1},
                  inputs, {{kString, most}, {kInt64, {}}}));
  if (words.empty()) {
    n.Set(0, results[0]);
  } else if (results[0].texts != nullptr) {
    n.Set(0, FirstTexts(n.g(), results[0], axis, results[1].tensor));
  } else {
    n.SetSized(0, results[0].tensor, kString, {{axis, results[1].tensor}}, 0);
  }
  return absl::OkStatus();
}

// The bytes of the longest text that is known.
int64_t LongestOf(const TypedTensor& tensor) {
  size_t longest = 0;
  if (tensor.texts != nullptr) {
    for (const std::string& text : tensor.texts->elements) longest = std::max(longest, text.size());
  }
  return static_cast<int64_t>(longest);
}

// Texts that are joined to themselves again and again are twice as long each time.
absl::Status StringConcat(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTexts(n, 0));
  MYCC_RETURN_IF_ERROR(ExpectTexts(n, 1));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, 1));
  MYCC_ASSIGN_OR_RETURN(const auto joined,
                        CallOnTexts(n.g(), "concat_texts", {}, {n.Typed(0), n.Typed(1)}, {{kString, shape}},
                                    ElementsOf(shape) * (LongestOf(n.Typed(0)) + LongestOf(n.Typed(1)))));
  n.Set(0, joined[0]);
  return absl::OkStatus();
}

// The most parts of a text: those of known texts, or what the node or the model says.
absl::StatusOr<int64_t> MostParts(const NodeImport& n, int64_t most_splits) {
  int64_t most = -1;
  if (n.Typed(0).texts != nullptr) {
    most = 1;
    for (const std::string& text : n.Typed(0).texts->elements)
      most = std::max(most, static_cast<int64_t>(text.size()) + 1);
  } else if (const std::vector<int64_t>* declared = n.DeclaredShape(0);
             declared != nullptr && declared->size() == n.Shape(0).size() + 1) {
    most = declared->back();
  }
  if (n.In(0)->num_elements() == 0) most = 0;
  if (most_splits >= 0) most = most < 0 ? most_splits + 1 : std::min(most, most_splits + 1);
  if (most >= 0) return most;
  return absl::UnimplementedError(
      "the most parts of a text are not known, which is not supported; maxsplit, or a fixed shape that the "
      "model "
      "declares for output 0, would say it");
}

// Output 0 has a new last axis, as long as the most parts that a text has.
absl::Status StringSplit(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTexts(n, 0));
  const int64_t most_splits = n.HasAttribute("maxsplit") ? n.Int("maxsplit", -1) : -1;
  if (most_splits >= kMostSplits) return n.NotSupported(absl::StrCat("a maxsplit of ", most_splits));
  MYCC_ASSIGN_OR_RETURN(const int64_t most, MostParts(n, most_splits));
  MYCC_ASSIGN_OR_RETURN(const TypedTensor delimiter, TextsOf(n, {n.String("delimiter", "")}, {1}));
  std::vector<int64_t> shape = n.Shape(0);
  shape.push_back(most);
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  MYCC_ASSIGN_OR_RETURN(const auto results,
                        CallOnTexts(n.g(), "split_texts", {most_splits}, {n.Typed(0), delimiter},
                                    {{kString, shape}, {kInt64, n.Shape(0)}, {kInt64, {}}}));
  const int axis = static_cast<int>(n.Rank(0));
  n.Set(1, results[1]);
  if (results[0].texts != nullptr) {
    n.Set(0, FirstTexts(n.g(), results[0], axis, results[2].tensor));
  } else if (n.In(0)->num_elements() == 0) {
    n.Set(0, results[0]);
  } else {
    n.SetSized(0, results[0].tensor, kString, {{axis, results[2].tensor}}, 0);
  }
  return absl::OkStatus();
}

absl::Status RegexFullMatch(NodeImport& n) {
  return n.NotSupported("matching regular expressions, for which a library would need a matcher,");
}

constexpr Operator kTextTable[] = {
    {"RegexFullMatch", RegexFullMatch, 20, "", false, kTextFirst},
    {"StringConcat", StringConcat, 20, "", false, kTextPair},
    {"StringNormalizer", StringNormalizer, 10, "", false, kTextFirst},
    {"StringSplit", StringSplit, 20, "", false, kTextFirst},
};

}  // namespace

std::span<const Operator> TextOperators() { return kTextTable; }

}  // namespace mycc::onnx
