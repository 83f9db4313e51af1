// The facts about a kernel's machine code that decide its speed, and the share of its machine's peak that a
// measured time reaches. Pure, but for NVRTC, which compiles a GPU's code.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "codegen/driver/kernel_spec.h"
#include "codegen/target/target.h"

namespace mycc {

// Names and values in the order in which they are shown: "code", "29 of 32 vector registers, ...".
using Facts = std::vector<std::pair<std::string, std::string>>;

// CPU: vector registers, AMX tile registers, bytes of the stack frame and of the slots in it that vectors are
// stored to, the most of any of the kernel's functions, but for those that pack weights. GPU: each kernel's
// registers, spills, shared memory, threads and blocks; where this machine lacks NVRTC, without registers and
// spills; then what each launch moves and is limited by (launch_counts.h). NotKnown's fact where the code
// cannot be made.
Facts CodeFactsOf(const KernelSpec& kernel, const Target& target);
// "code", "not known: why".
Facts NotKnown(const absl::Status& why);

// The facts that a CPU's assembly text has, the most of any of its functions.
struct CpuCode {
  int vector_registers = 0, tile_registers = 0;
  int64_t frame_bytes = 0, spill_bytes = 0;
};
CpuCode ReadAssembly(const std::string& assembly);

// "62 % of f32 arithmetic (1.240 of 2.000 TFLOP/s), 12 % of memory bandwidth (24.0 of 200.0 GB/s)", or "...
// from caches" for arguments that came faster than memory gives them. The peaks are the round numbers of the
// cost model (tuner/space/machine.h); arithmetic is compared for f32 and f64 alone.
std::string ShareOfPeak(const Workload& workload, const Target& target, std::optional<double> seconds);

}  // namespace mycc
