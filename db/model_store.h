// Stores learned cost models in the log's file, so that a new job starts from the samples of all earlier
// ones. A model's id is the hash of its bytes: a job that names it uses exactly that model as long as it
// runs. Thread rule: thread-safe; each call is one transaction.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

struct StoredModel {
  std::string id;
  std::string kind;  // what it predicts, for what sort of target; the tuner's word
  std::string info;  // how it was trained, for people
  int64_t created_unix_micros = 0;
  std::string bytes;
};

class ModelStore {
 public:
  // REQUIRES: the log outlives the store.
  explicit ModelStore(TuningLog* log) : log_(log), database_(log->database()) {}

  // Returns the model's id. It is the newest of its kind then. A model that is known already keeps its kind
  // and its info.
  absl::StatusOr<std::string> Save(const std::string& kind, const std::string& info,
                                   const std::string& bytes);
  // NotFound when there is none.
  absl::StatusOr<StoredModel> Load(const std::string& id) const;
  absl::StatusOr<std::string> NewestId(const std::string& kind) const;
  // The newest model of each kind, in order of the kinds, without its bytes.
  absl::StatusOr<std::vector<StoredModel>> ListNewest() const;
  // Forgets all but the newest `count` of each kind and those whose ids are `needed`.
  absl::Status KeepNewest(int count, const std::set<std::string>& needed);

 private:
  TuningLog* const log_;
  Database* const database_;
};

}  // namespace mycc
