#include "laboratory/t1.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "laboratory/json_value.h"
#include "laboratory/result_stream.h"

namespace mycc {
namespace {

using nlohmann::json;

constexpr size_t kMostParameterValues = 100'000;

absl::Status RefuseT1(const std::string& what) { return absl::InvalidArgumentError(what); }

// A member of an object; null when it is absent. Files from before the schema spell "values" for "Values".
const json* Find(const json& object, std::string name) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(name);
  if (found == object.end()) {
    name[0] = absl::ascii_tolower(static_cast<unsigned char>(name[0]));
    found = object.find(name);
  }
  return found == object.end() ? nullptr : &*found;
}

// The same, of a type; null when it is of another.
const json* Member(const json& object, const char* name, json::value_t type) {
  const json* found = Find(object, name);
  return found != nullptr && found->type() == type ? found : nullptr;
}

// "Values": an array, or the text of a Python expression.
absl::StatusOr<PythonValue> GivenValues(const json& parameter) {
  const json* values = Find(parameter, "Values");
  if (values == nullptr) return RefuseT1("no \"Values\"; expected a list or the text of one");
  if (!values->is_string()) return FromJson(*values);
  MYCC_ASSIGN_OR_RETURN(const Expression expression, Expression::Parse(values->get<std::string>(), {}));
  ExpressionEnvironment environment(expression.num_slots());
  return expression.Evaluate(&environment);
}

absl::StatusOr<ConstrainedParameter> ReadParameter(const json& parameter) {
  ConstrainedParameter read;
  read.name = Member(parameter, "Name", json::value_t::string)->get<std::string>();
  MYCC_ASSIGN_OR_RETURN(const PythonValue given, GivenValues(parameter));
  absl::flat_hash_set<std::string> seen;
  if (given.AsList() == nullptr) {
    read.values = {given};
  } else {
    for (const PythonValue& value : *given.AsList()) {
      if (seen.insert(EqualityKey(value)).second) read.values.push_back(value);
    }
  }
  if (read.values.empty() || read.values.size() > kMostParameterValues) {
    return RefuseT1(absl::StrCat(read.values.size(), " \"Values\"; expected 1 to ", kMostParameterValues));
  }
  return read;
}

absl::StatusOr<std::vector<std::string>> ReadConditions(const json& space) {
  std::vector<std::string> expressions;
  for (const char* member : {"Conditions", "Constraints"}) {
    const json* conditions = Member(space, member, json::value_t::array);
    if (conditions == nullptr) continue;
    for (const json& condition : *conditions) {
      const json* expression =
          condition.is_string() ? &condition : Member(condition, "Expression", json::value_t::string);
      if (expression == nullptr) {
        return RefuseT1(absl::StrCat("\"", member, "\" ", expressions.size() + 1,
                                     ": no \"Expression\"; expected the text of a Python expression"));
      }
      expressions.push_back(expression->get<std::string>());
    }
  }
  return expressions;
}

// The choice of a parameter's "Default"; -1: it has none among its values.
int DefaultOf(const json& parameter, const ConstrainedParameter& read) {
  const json* given = Find(parameter, "Default");
  if (given == nullptr) return -1;
  const auto value = FromJson(*given);
  if (!value.ok()) return -1;
  for (size_t i = 0; i < read.values.size(); ++i) {
    if (AreEqual(read.values[i], *value)) return static_cast<int>(i);
  }
  return -1;
}

absl::StatusOr<T1Space> ReadDocument(const json& document) {
  const json* space = Member(document, "ConfigurationSpace", json::value_t::object);
  const json* given = space == nullptr ? nullptr : Member(*space, "TuningParameters", json::value_t::array);
  if (given == nullptr || given->empty())
    return RefuseT1("no \"TuningParameters\" in \"ConfigurationSpace\"; expected an array of parameters");
  T1Space read;
  std::vector<ConstrainedParameter> parameters;
  for (const json& parameter : *given) {
    const json* name = Member(parameter, "Name", json::value_t::string);
    const std::string place = absl::StrCat("parameter ", parameters.size() + 1);
    if (name == nullptr) return RefuseT1(absl::StrCat(place, ": no \"Name\"; expected a text"));
    auto one = ReadParameter(parameter);
    if (!one.ok())
      return RefuseT1(absl::StrCat(place, ", `", name->get<std::string>(), "`: ", one.status().message()));
    read.defaults.push_back(DefaultOf(parameter, *one));
    parameters.push_back(*std::move(one));
  }
  if (std::ranges::find(read.defaults, -1) != read.defaults.end()) read.defaults.clear();
  MYCC_ASSIGN_OR_RETURN(const std::vector<std::string> conditions, ReadConditions(*space));
  MYCC_ASSIGN_OR_RETURN(read.space, ConstrainedSpace::Create(std::move(parameters), conditions));
  if (const json* general = Member(document, "General", json::value_t::object)) {
    if (const json* name = Member(*general, "BenchmarkName", json::value_t::string))
      read.name = name->get<std::string>();
  }
  const json* kernel = Member(document, "KernelSpecification", json::value_t::object);
  if (read.name.empty() && kernel != nullptr) {
    if (const json* name = Member(*kernel, "KernelName", json::value_t::string))
      read.name = name->get<std::string>();
  }
  return read;
}

}  // namespace

absl::StatusOr<T1Space> ReadT1(const std::string& text, const std::string& where) {
  // A T1 file has no entries, so all of it is in the header.
  auto read = ReadResults(text, [](const ResultHeader&, const std::string&, const json&) {
    return absl::InvalidArgumentError("results; expected a T1 file, with \"ConfigurationSpace\"");
  });
  if (!read.ok()) return RefuseT1(absl::StrCat(where, ": ", read.status().message()));
  const json document(std::move(read->members));
  auto space = ReadDocument(document);
  if (!space.ok()) return RefuseT1(absl::StrCat(where, ": ", space.status().message()));
  return space;
}

}  // namespace mycc
