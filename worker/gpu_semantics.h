// Computes the outputs of a GPU's test case as the language defines them, at some places: to check a
// reference kernel, to do without one, and on inputs with special values. Threads of the host do it, each a
// share of the places, while the device and the compiler work. Thread rule: one thread uses an object, and
// its destructor waits for the threads.
#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "codegen/workload/reference.h"
#include "codegen/workload/sampled_values.h"
#include "codegen/workload/workload.h"
#include "proto/measure.pb.h"
#include "worker/permitted_output.h"

namespace mycc {

class GpuSemantics {
 public:
  // Begins to compute what a reference kernel is checked with, and what is permitted on special inputs. They
  // are drawn by formulas, so that each element is computed where it is read: no tensor is stored.
  GpuSemantics(const v1::PrepareRequest& request, Workload workload);
  GpuSemantics(const GpuSemantics&) = delete;

  const Workload& workload() const { return workload_; }
  // Whether it is the request's: of the same workload and inputs.
  bool IsOf(const v1::PrepareRequest& request) const;

  // Both wait for the threads, and are called once. Each output's values at some places.
  std::vector<SampledValues> TakeChecked() { return checked_.get(); }
  PermittedOutputs TakePermitted() { return permitted_.get(); }

  // The values at many places: all that is expected where there is no reference kernel.
  std::vector<SampledValues> Sample() const;

 private:
  std::vector<SampledValues> Sample(int64_t places, double seconds) const;

  const std::string text_;
  const uint64_t seed_;
  const Workload workload_;
  // The last members, so that the others outlive the threads.
  std::future<std::vector<SampledValues>> checked_;
  std::future<PermittedOutputs> permitted_;
};

}  // namespace mycc
