// A cache of the test cases that a GPU's runner keeps in device memory, with the state for repeated launches
// and special values. The least recently used go first. Thread rule: the device's thread.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/gpu_case.h"
#include "worker/gpu_context.h"
#include "worker/gpu_repetition.h"
#include "worker/gpu_special.h"

namespace mycc {

struct GpuTest {
  std::unique_ptr<GpuCase> made;
  std::unique_ptr<GpuRepetition> repetition;
  std::unique_ptr<GpuSpecial> special;

  int64_t bytes() const { return made->bytes() + repetition->bytes() + special->bytes(); }
};

class GpuCases {
 public:
  GpuCases(GpuContext* device, int64_t most_bytes) : device_(device), most_bytes_(most_bytes) {}

  // Makes the case where it is not kept. It stays until the next call.
  absl::StatusOr<GpuTest*> Find(const std::string& workload_text, const v1::GpuCase& description);
  // Restores the case that was used last, or drops it.
  void MendLast();

  int64_t bytes() const;

 private:
  // Keyed by the workload's text and the description; the most recently used first.
  struct Kept {
    std::string name;
    GpuTest test;
  };
  absl::StatusOr<GpuTest> Make(const std::string& workload_text, const v1::GpuCase& description) const;

  GpuContext* const device_;
  const int64_t most_bytes_;
  std::deque<Kept> kept_;
};

}  // namespace mycc
