// Reads the entries of Kernel Tuner's cache files into a table. Thread rule: thread-compatible.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "laboratory/result_stream.h"
#include "laboratory/result_table.h"

namespace mycc {

// Entries of a cache come after its header in every file that Kernel Tuner has written, but JSON does not say
// so: their members stay as they are until the header is known.
class CacheReader {
 public:
  // InvalidArgument with the entry and what was expected.
  absl::Status Entry(const ResultHeader& before, const std::string& key, const nlohmann::json& entry);
  // The parameters that the header names, in its order, with its values before those that only entries have.
  absl::StatusOr<ResultTable> Finish(const ResultHeader& header) const;

 private:
  ResultTable entries_;
  std::vector<std::string> keys_;
};

}  // namespace mycc
