// Operators on strings. Each is a library kernel on handles (texts.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/texts.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc::onnx {
namespace {

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

constexpr Operator kTextTable[] = {
    {"StringNormalizer", StringNormalizer, 10, "", false, true},
};

}  // namespace

std::span<const Operator> TextOperators() { return kTextTable; }

}  // namespace mycc::onnx
