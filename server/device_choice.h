// Chooses the device whose constants a task's predictions use. Thread rule: thread-compatible.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/target/target.h"
#include "db/constants_store.h"

namespace mycc {

// A device fits a target that is its own but for the number of threads and the rewriting of sums. The devices
// with as many threads come before the others, and the middle one of them by its peak is chosen: neither a
// throttled device nor an untrue worker among several decides. The choice is a function of what the log
// holds.
class DeviceChoice {
 public:
  // Those of other versions of the micro-benchmarks, or whose target this build does not know, are left out.
  explicit DeviceChoice(const std::vector<StoredConstants>& known);

  // Null: none fits. Valid while the choice lives.
  const v1::DeviceConstants* For(const Target& target) const;

 private:
  struct Fitting {
    int threads;
    v1::DeviceConstants constants;
  };
  std::map<std::string, std::vector<Fitting>> fitting_;  // by targets without threads; each by its peak
};

}  // namespace mycc
