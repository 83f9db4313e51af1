#include "db/message_json.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::json;
using nlohmann::ordered_json;

// MEASURE_STATUS_ for MeasureStatus.
std::string ValuePrefix(const EnumDescriptor& type) {
  std::string prefix;
  for (char c : type.name()) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(absl::ascii_toupper(static_cast<unsigned char>(c)));
  }
  return prefix + "_";
}

std::string WordOf(const EnumValueDescriptor& value) {
  return absl::AsciiStrToLower(value.name().substr(ValuePrefix(*value.type()).size()));
}

ordered_json EnumToJson(const EnumDescriptor& type, int number) {
  const EnumValueDescriptor* value = type.FindValueByNumber(number);
  return value == nullptr ? ordered_json(number) : ordered_json(WordOf(*value));
}

ordered_json DoubleToJson(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

ordered_json FieldToJson(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: return reflection.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT64: return reflection.GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_INT32: return reflection.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT32: return reflection.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_BOOL: return reflection.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE: return DoubleToJson(reflection.GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_STRING: return ToUtf8(reflection.GetString(message, field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumToJson(*field->enum_type(), reflection.GetEnumValue(message, field));
    case FieldDescriptor::CPPTYPE_MESSAGE: return MessageToJson(reflection.GetMessage(message, field));
    default: MYCC_CHECK(false) << "a field of a type without JSON: " << field->full_name(); return {};
  }
}

ordered_json ElementToJson(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return DoubleToJson(reflection.GetRepeatedDouble(message, field, index));
    case FieldDescriptor::CPPTYPE_UINT64: return reflection.GetRepeatedUInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_STRING: return ToUtf8(reflection.GetRepeatedString(message, field, index));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(reflection.GetRepeatedMessage(message, field, index));
    default:
      MYCC_CHECK(false) << "a repeated field of a type without JSON: " << field->full_name();
      return {};
  }
}

absl::Status Expected(const std::string& key, const std::string& what, const json& found) {
  constexpr size_t kMostShown = 40;
  // A structure is not shown: it could be nested deeper than the stack.
  std::string shown = found.is_structured() ? absl::StrCat("an ", found.type_name())
                                            : found.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > kMostShown) shown = ToUtf8(shown.substr(0, kMostShown)) + "...";
  return absl::InvalidArgumentError(absl::StrCat("key \"", key, "\": expected ", what, ", found ", shown));
}

std::optional<double> DoubleFromJson(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

template <typename Integer>
std::optional<Integer> IntegerFromJson(const json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<Integer>::max()))
      return static_cast<Integer>(number);
  } else if (value.is_number_integer() && std::numeric_limits<Integer>::is_signed) {
    const int64_t number = value.get<int64_t>();
    if (number >= static_cast<int64_t>(std::numeric_limits<Integer>::min()))
      return static_cast<Integer>(number);
  }
  return std::nullopt;
}

std::optional<int> EnumFromJson(const EnumDescriptor& type, const json& value) {
  if (!value.is_string()) return IntegerFromJson<int>(value);
  for (int i = 0; i < type.value_count(); ++i) {
    if (WordOf(*type.value(i)) == value.get_ref<const std::string&>()) return type.value(i)->number();
  }
  return std::nullopt;
}

std::string EnumWords(const EnumDescriptor& type) {
  std::string words = "one of";
  for (int i = 1; i < type.value_count(); ++i)
    absl::StrAppend(&words, i == 1 ? " " : ", ", WordOf(*type.value(i)));
  return words;
}

absl::Status FillMessage(const json& object, const std::string& prefix, Message* message);

absl::Status SetField(const json& value, const std::string& key, const FieldDescriptor* field,
                      Message* message) {
  const Reflection& reflection = *message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      const std::optional<int64_t> number = IntegerFromJson<int64_t>(value);
      if (!number) return Expected(key, "a 64-bit integer", value);
      reflection.SetInt64(message, field, *number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const std::optional<uint64_t> number = IntegerFromJson<uint64_t>(value);
      if (!number) return Expected(key, "an unsigned 64-bit integer", value);
      reflection.SetUInt64(message, field, *number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      const std::optional<int32_t> number = IntegerFromJson<int32_t>(value);
      if (!number) return Expected(key, "a 32-bit integer", value);
      reflection.SetInt32(message, field, *number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      const std::optional<uint32_t> number = IntegerFromJson<uint32_t>(value);
      if (!number) return Expected(key, "an unsigned 32-bit integer", value);
      reflection.SetUInt32(message, field, *number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!value.is_boolean()) return Expected(key, "true or false", value);
      reflection.SetBool(message, field, value.get<bool>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const std::optional<double> number = DoubleFromJson(value);
      if (!number) return Expected(key, "a number", value);
      reflection.SetDouble(message, field, *number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_STRING:
      if (!value.is_string() || !IsUtf8(value.get_ref<const std::string&>()))
        return Expected(key, "a text", value);
      reflection.SetString(message, field, value.get<std::string>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_ENUM: {
      const std::optional<int> number = EnumFromJson(*field->enum_type(), value);
      if (!number) return Expected(key, EnumWords(*field->enum_type()), value);
      reflection.SetEnumValue(message, field, *number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!value.is_object()) return Expected(key, "an object", value);
      return FillMessage(value, key + ".", reflection.MutableMessage(message, field));
    default:
      MYCC_CHECK(false) << "records.proto has a type without JSON: " << field->full_name();
      return absl::OkStatus();
  }
}

absl::Status AddElements(const json& array, const std::string& key, const FieldDescriptor* field,
                         Message* message) {
  if (!array.is_array()) return Expected(key, "an array", array);
  const Reflection& reflection = *message->GetReflection();
  for (const json& value : array) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      const std::optional<double> number = DoubleFromJson(value);
      if (!number) return Expected(key, "numbers", value);
      reflection.AddDouble(message, field, *number);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      if (!value.is_string()) return Expected(key, "strings", value);
      reflection.AddString(message, field, value.get<std::string>());
    } else {
      MYCC_CHECK(field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) << field->full_name();
      const std::optional<uint64_t> number = IntegerFromJson<uint64_t>(value);
      if (!number) return Expected(key, "unsigned 64-bit integers", value);
      reflection.AddUInt64(message, field, *number);
    }
  }
  return absl::OkStatus();
}

std::string KeysOf(const google::protobuf::Descriptor& type) {
  std::vector<std::string> keys;
  for (int i = 0; i < type.field_count(); ++i) keys.emplace_back(type.field(i)->name());
  return absl::StrJoin(keys, ", ");
}

absl::Status FillMessage(const json& object, const std::string& prefix, Message* message) {
  for (const auto& [name, value] : object.items()) {
    const std::string key = prefix + name;
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown key \"", ToUtf8(key), "\"; expected ", KeysOf(*message->GetDescriptor())));
    }
    MYCC_RETURN_IF_ERROR(field->is_repeated() ? AddElements(value, key, field, message)
                                              : SetField(value, key, field, message));
  }
  return absl::OkStatus();
}

}  // namespace

ordered_json MessageToJson(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  ordered_json object = ordered_json::object();
  for (const FieldDescriptor* field : fields) {
    if (!field->is_repeated()) {
      object[field->name()] = FieldToJson(message, field);
      continue;
    }
    ordered_json& array = object[field->name()] = ordered_json::array();
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      array.push_back(ElementToJson(message, field, i));
    }
  }
  return object;
}

ordered_json WholeMessageToJson(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  ordered_json object = ordered_json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message.GetDescriptor()->field(i);
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    ordered_json& value = object[field->name()];
    if (field->is_repeated()) {
      value = ordered_json::array();
      for (int n = 0; n < reflection.FieldSize(message, field); ++n) {
        value.push_back(is_message ? WholeMessageToJson(reflection.GetRepeatedMessage(message, field, n))
                                   : ElementToJson(message, field, n));
      }
    } else if (field->has_presence() && !reflection.HasField(message, field)) {
      value = nullptr;
    } else if (is_message) {
      value = WholeMessageToJson(reflection.GetMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
               reflection.GetEnumValue(message, field) == 0) {
      value = nullptr;
    } else {
      value = FieldToJson(message, field);
    }
  }
  return object;
}

absl::Status MessageFromJson(const json& json, Message* message) {
  if (!json.is_object()) return Expected("", "an object", json);
  return FillMessage(json, "", message);
}

}  // namespace mycc
