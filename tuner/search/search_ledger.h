// The record of a search's candidates and their outcomes. It is a strategy's only state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "codegen/schedule/trace.h"
#include "tuner/space/refit.h"

namespace mycc {

// The origin of a candidate. The names are for logs and people; the numbers may change.
enum class Origin : uint8_t {
  kDefault,
  kHistory,
  kRandom,
  kMutation,
  kCrossover,
  kDescent,
  kGrid,
  kSurrogate,
  kStart
};
std::string_view OriginName(Origin origin);  // "default"

struct Candidate {
  uint32_t generation = 0;
  uint32_t index = 0;  // within the generation
  Point point;
  std::string trace;  // canonical text
  std::optional<double> predicted_seconds;
  std::optional<uint64_t> model;  // the version that predicted it; absent where nobody kept it
  Origin origin = Origin::kRandom;

  bool operator==(const Candidate&) const = default;
};

// A candidate's outcome. After a failure of the infrastructure a candidate is measured again; when it is
// given up, it has an outcome without time and failure.
struct Outcome {
  uint32_t generation = 0;
  uint32_t index = 0;
  std::optional<double> seconds;  // of a verified run; absent when the candidate failed or was given up
  std::string failure;            // the status' name when it failed

  bool ok() const { return seconds.has_value(); }
  bool given_up() const { return !ok() && failure.empty(); }
  bool operator==(const Outcome&) const = default;
};

// The text of the steps alone: two traces with the same steps are one program, whatever decisions they
// record.
std::string StepsKey(const Trace& trace);

class SearchLedger {
 public:
  struct Entry {
    Candidate candidate;
    std::optional<Outcome> outcome;
  };

  // The number of generations proposed so far, which is also the number of the next one.
  int generations() const { return static_cast<int>(generations_.size()); }
  // The number of leading generations all of whose outcomes are known.
  int complete() const;
  const std::vector<Entry>& generation(int number) const { return generations_[number]; }
  bool Proposed(const std::string& steps_key) const { return proposed_.contains(steps_key); }
  int64_t num_candidates() const { return num_candidates_; }

  // The successful entries of the first `visible` generations, fastest first, ties in candidate order.
  std::vector<const Entry*> Fastest(int visible) const;
  // The fastest of all that is known.
  const Entry* best() const;

  // Appends a generation; `steps_keys` belong to its candidates and are new.
  void Add(std::vector<Candidate> generation, const std::vector<std::string>& steps_keys);
  absl::Status Tell(const Outcome& outcome);

 private:
  std::vector<std::vector<Entry>> generations_;
  absl::flat_hash_set<std::string> proposed_;
  int64_t num_candidates_ = 0;
};

}  // namespace mycc
