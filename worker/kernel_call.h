// Calls a candidate's kernel on a CPU and distrusts it: outputs are poisoned before a call, and writes
// outside of them are detected afterwards. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"
#include "codegen/runtime/placement.h"
#include "codegen/workload/workload.h"
#include "worker/chain.h"
#include "worker/repetition.h"

namespace mycc {

// Memory between two guard bands, which detect writes beside it.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes, const MemoryPlace& place = {});
  uint8_t* data() const { return memory_.get() + kBand + offset_; }
  int64_t size() const { return bytes_; }
  bool intact() const;

 private:
  static constexpr int64_t kBand = 4096;
  struct Free {
    std::align_val_t alignment;
    void operator()(uint8_t* memory) const;
  };
  int64_t bytes_, offset_;
  std::unique_ptr<uint8_t, Free> memory_;
};

class KernelCall {
 public:
  // The library's only function, which must have the workload's arguments. `inputs`: the workload's, in
  // declared order, in storage form; copied, and const ones packed. `placement` is of all tensors.
  static absl::StatusOr<std::unique_ptr<KernelCall>> Load(const std::string& library,
                                                          const Workload& workload,
                                                          const std::vector<const uint8_t*>& inputs,
                                                          int placement = 0);

  // Replaces the inputs.
  absl::Status SetInputs(const std::vector<const uint8_t*>& inputs);

  // Fills the outputs with values that no kernel computes: NaNs, and bytes of 0xaa.
  void PoisonOutputs();
  absl::Status Call() { return arguments_.Call(); }
  // Calls without checks, for timing: an earlier call was checked.
  void CallUnchecked() { entry_(arguments_.call_args().data(), arguments_.size(), nullptr); }

  // Its memory as the model protocol treats it.
  Chain ChainOf(int threads, int64_t cache_bytes);

  const uint8_t* output(int index) const { return outputs_[index].data(); }
  std::vector<Repetition::Output> outputs() const;
  // DataLoss when the kernel wrote outside the outputs: to an input, or beside an output.
  absl::Status CheckUntouched(const std::vector<const uint8_t*>& inputs);

 private:
  KernelCall(std::unique_ptr<Library> library, Arguments arguments, Library::Entry entry,
             const Workload& workload, int placement);

  std::unique_ptr<Library> library_;
  Arguments arguments_;
  Library::Entry entry_;
  int num_inputs_;
  std::vector<Buffer> output_tensors_;
  std::vector<GuardedBuffer> outputs_;
};

}  // namespace mycc
