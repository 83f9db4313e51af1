// Reads a JSON file of results entry by entry, so that a file of a million results never stands in memory as
// a tree. Python's NaN and Infinity, which are no JSON, are read as an empty text.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

struct ResultHeader {
  std::map<std::string, nlohmann::json> members;  // of the document, but those of entries
  bool has_cache = false, has_results = false;    // which list of entries it had
  bool is_cut = false;  // it breaks off after an entry, as the file of a tuner at work does
};

// Called for each entry, with what stood before it: its key in "cache", or its number in "results". An error
// stops the reading.
using ResultVisitor = std::function<absl::Status(const ResultHeader& before, const std::string& key,
                                                 const nlohmann::json& entry)>;

// The document is an object with "cache", an object of entries, or "results", an array of entries; other
// members are returned. A document that breaks off in or after its entries loses only the entry that is not
// complete. InvalidArgument, with the line and column, for text that is no JSON.
absl::StatusOr<ResultHeader> ReadResults(std::string text, const ResultVisitor& visit);

}  // namespace mycc
