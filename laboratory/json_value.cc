#include "laboratory/json_value.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {

absl::StatusOr<PythonValue> FromJson(const nlohmann::json& value) {
  if (value.is_null()) return PythonValue{};
  if (value.is_boolean()) return PythonValue::OfBool(value.get<bool>());
  if (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max())
    return absl::InvalidArgumentError(absl::StrCat(value.dump(), "; expected an integer of at most 64 bits"));
  if (value.is_number_integer()) return PythonValue::OfInt(value.get<int64_t>());
  if (value.is_number()) return PythonValue::OfFloat(value.get<double>());
  if (value.is_string()) return PythonValue::OfText(value.get<std::string>());
  if (!value.is_array())
    return absl::InvalidArgumentError("an object; expected a number, a text, true, false or a list");
  std::vector<PythonValue> list;
  for (const nlohmann::json& element : value) {
    MYCC_ASSIGN_OR_RETURN(PythonValue converted, FromJson(element));
    list.push_back(std::move(converted));
  }
  return PythonValue::OfList(std::move(list));
}

PythonValue FromKeyWord(const std::string& word) {
  const std::string text(absl::StripAsciiWhitespace(word));
  if (text == "True" || text == "False") return PythonValue::OfBool(text == "True");
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return PythonValue::OfInt(integer);
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return PythonValue::OfFloat(number);
  return PythonValue::OfText(text);
}

}  // namespace mycc
