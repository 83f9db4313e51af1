#include "command/model_values.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "command/misuse.h"
#include "command/npy.h"

namespace mycc {
namespace {

std::optional<Scalar> ParseInteger(DType dtype, const std::string& word) {
  Scalar scalar;
  if (uint64_t number = 0; dtype == DType::kU64 && absl::SimpleAtoi(word, &number)) {
    scalar.i = static_cast<int64_t>(number);
    return scalar;
  }
  if (dtype == DType::kU64 || !absl::SimpleAtoi(word, &scalar.i)) return std::nullopt;
  return WrapInt(dtype, scalar.i) == scalar.i ? std::optional(scalar) : std::nullopt;
}

std::optional<Scalar> ParseScalar(DType dtype, const std::string& word) {
  Scalar scalar;
  if (dtype == DType::kBool) {
    scalar.i = word == "true" || word == "1" ? 1 : 0;
    return scalar.i != 0 || word == "false" || word == "0" ? std::optional(scalar) : std::nullopt;
  }
  if (!IsFloat(dtype)) return ParseInteger(dtype, word);
  double number = 0;
  if (!absl::SimpleAtod(word, &number)) return std::nullopt;
  scalar.f = RoundFloat(dtype, number);
  return std::isfinite(scalar.f) || !std::isfinite(number) ? std::optional(scalar) : std::nullopt;
}

absl::StatusOr<NDArray> ReadNumbers(const std::string& text, const OnnxInput& input) {
  const size_t rank = input.shape ? input.shape->size() : 1;
  if (rank > 1 || input.is_bits)
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "`; expected FILE.npy for a value of ",
                     input.is_bits ? absl::StrCat("type ", input.type) : absl::StrCat("rank ", rank)));
  const std::vector<std::string> words =
      text.empty() ? std::vector<std::string>() : absl::StrSplit(text, ',');
  if (rank == 0 && words.size() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "`; expected one number, for a value of rank 0"));
  NDArray array = NDArray::Zeros(input.dtype, std::vector<int64_t>(rank, static_cast<int64_t>(words.size())));
  for (size_t i = 0; i < words.size(); ++i) {
    const std::optional<Scalar> scalar = ParseScalar(input.dtype, words[i]);
    if (!scalar) {
      const bool is_bool = input.dtype == DType::kBool;
      return absl::InvalidArgumentError(absl::StrCat(
          "`", words[i], "` is no ", is_bool ? "value" : "number", " of type ", DTypeName(input.dtype),
          "; expected such as ", is_bool ? "true" : "0,2", ", or FILE.npy"));
    }
    array.Set(static_cast<int64_t>(i), *scalar);
  }
  return array;
}

absl::StatusOr<NDArray> ReadValueFile(const std::string& path, const OnnxInput& input) {
  const NpyJudge judge = [&](const NpyArray& array) {
    const std::vector<std::string> descrs = NpyDescrs(input.dtype);
    if (std::ranges::find(descrs, array.descr) == descrs.end())
      return absl::InvalidArgumentError(absl::StrCat("`", path, "` holds ", array.descr, "; expected ",
                                                     descrs[0], " (", DTypeName(input.dtype), ")"));
    const absl::Status shape = CheckValueShape(input, array.shape);
    return shape.ok()
               ? shape
               : absl::InvalidArgumentError(absl::StrCat("`", path, "` ", std::string(shape.message())));
  };
  MYCC_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(path, judge));
  NDArray value = NDArray::Zeros(input.dtype, array.shape);
  std::ranges::copy(array.bytes, value.bytes.begin());
  if (input.dtype == DType::kBool) {
    for (uint8_t& element : value.bytes) element = element != 0 ? 1 : 0;
  }
  return value;
}

}  // namespace

bool ModelValue::is_file() const { return absl::EndsWith(value, ".npy"); }

absl::StatusOr<ModelValue> ParseModelValue(const std::string& text) {
  // The last one, because names of inputs may have others.
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    return Misuse(absl::StrCat("--value: `", text, "`; expected NAME=0,2 or NAME=FILE.npy"));
  return ModelValue{text.substr(0, equals), text.substr(equals + 1)};
}

OnnxValue ValueFor(const ModelValue& value) {
  return [value](const OnnxInput& input) {
    return value.is_file() ? ReadValueFile(value.value, input) : ReadNumbers(value.value, input);
  };
}

}  // namespace mycc
