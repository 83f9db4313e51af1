// Results of a tuner as a file has them, before they become a recorded space: rows of named values. Values
// are kept once for each name. Thread rule: thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "laboratory/constrained_space.h"
#include "laboratory/recorded_space.h"

namespace mycc {

class ResultTable {
 public:
  struct Row {
    std::vector<int> values;          // by the number of a name: the number of its value, -1 for none
    std::vector<double> run_seconds;  // or what stands for them (RecordedConfiguration)
    double compile_seconds = 0;
    std::optional<double> measuring_seconds;  // as in RecordedConfiguration
    std::optional<double> seconds;            // likewise
    std::optional<double> value;              // of an objective that is no time
    std::string failure;
    std::string where;  // "entry 16,2", for errors
  };

  // The number of a name, new ones behind the others.
  int Name(const std::string& name);
  // The number of a value of a name. Equal values are one.
  int Value(int name, const PythonValue& value);
  // Gives a row the value of a name.
  void SetValue(const std::string& name, const PythonValue& value, Row* row);
  void Add(Row row) { rows_.push_back(std::move(row)); }

  std::string kernel, device;
  std::string objective;  // empty: the time
  bool higher_is_better = false;
  // The names whose absence from a row means their first value, as decisions that a sketch has not.
  bool absent_is_first = false;

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<PythonValue>& values(int name) const { return values_[name]; }
  std::vector<Row>& rows() { return rows_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, int> number_of_;
  std::vector<std::vector<PythonValue>> values_;
  std::vector<absl::flat_hash_map<std::string, int>> value_number_;  // by EqualityKey
  std::vector<Row> rows_;
};

// The rows of a table, by what became of them.
struct SpaceCounts {
  int64_t recorded = 0;    // configurations of the space with a result
  int64_t failed = 0;      // of these, with a failure
  int64_t outside = 0;     // results that the space does not have: left out
  int64_t superseded = 0;  // results of a configuration that has a later one: left out
};

// The space of a table's results. With `space`, its parameters, and the results that satisfy its constraints;
// else the table's own names and values. Values that are numbers stand in ascending order. A later result of
// a configuration replaces an earlier one. `where` is the file, for errors: InvalidArgument for results
// without a parameter's value, for a name of several values that the space does not have, and for a table
// without a result in the space.
absl::StatusOr<RecordedSpace> MakeRecordedSpace(const ResultTable& table, const ConstrainedSpace* space,
                                                const std::string& where, SpaceCounts* counts);

}  // namespace mycc
