#include "laboratory/trace_decisions.h"

#include "absl/strings/str_cat.h"
#include "codegen/schedule/trace.h"

namespace mycc {

absl::StatusOr<bool> AddTraceDecisions(const std::string& trace, const std::string& where, ResultTable* table,
                                       ResultTable::Row* row) {
  const absl::StatusOr<Trace> parsed = ParseTrace(trace);
  if (!parsed.ok())
    return absl::InvalidArgumentError(absl::StrCat(where, ": the trace at ", parsed.status().message()));
  if (parsed->sketch.empty()) return false;
  const auto set = [&](const std::string& name, const PythonValue& value) {
    const int number = table->Name(name);
    if (static_cast<int>(row->values.size()) <= number) row->values.resize(number + 1, -1);
    row->values[number] = table->Value(number, value);
  };
  table->absent_is_first = true;
  set("sketch", PythonValue::OfText(parsed->sketch));
  for (const auto& [decision, value] : parsed->decisions) set(decision, PythonValue::OfInt(value));
  return true;
}

}  // namespace mycc
