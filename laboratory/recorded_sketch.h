// A recorded space as a search meets it: a sketch whose decisions are the parameters, so that every strategy
// runs on it unchanged. Its traces stand for configurations and carry nothing to lower.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "laboratory/constrained_space.h"
#include "laboratory/recorded_space.h"
#include "tuner/space/space.h"

namespace mycc {

// Finds the configuration of a choice. Thread rule: immutable once made. The space has to outlive it.
class ConfigurationIndex {
 public:
  explicit ConfigurationIndex(const RecordedSpace& space);
  // The place in RecordedSpace::configurations; -1: the space has none.
  int Find(const Choice& choice) const;

 private:
  absl::flat_hash_map<std::vector<int>, int> place_of_;
};

// The sketch `name` of a space. A point is a choice of a value for each parameter, and legal when the space
// has a result for it. A decision's choices are the values where these are integers, else their numbers from
// 0. The default is the author's where it is legal; else the configuration nearest to the middle of every
// parameter. REQUIRES: a configuration at least.
Sketch RecordedSketch(std::shared_ptr<const RecordedSpace> space, const std::string& name = "recorded");

}  // namespace mycc
