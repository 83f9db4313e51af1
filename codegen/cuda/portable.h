// A GPU's kernel as it travels from a host that builds to one that measures: machine code, and a description
// of its launches. No code of a host travels. The measuring host writes the tables of its own glue from the
// description (artifact/portable_library.h), and the artifact runtime carries them out.
//
//   build host:  workload, trace --Lower, EmitCuda, NVRTC--> Portable --bytes--> measuring host:
//   ParsePortable
//
// The alternative is to lower the trace again on the measuring host, and to take the machine code alone. That
// costs the measuring host about a tenth of what NVRTC costs, which is what it is to be spared, and it would
// bind both hosts to one version. The description costs a millisecond to read, and is not trusted either:
// ParsePortable accepts only launches within the device's limits, over arguments of the workload's sizes.
// The effect of the machine code on the device is not checked here: as for any candidate, its outputs are.
//
// Errors are InvalidArgument, in words. Thread rule: values, and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The largest that is read.
inline constexpr size_t kMostPortableBytes = size_t{16} << 20;

struct Portable {
  std::string target;  // text
  std::string code_digest;
  std::string compiler;               // "nvrtc-13.0"
  CudaProgram program;                // without symbol and source
  CudaImage image;                    // without log
  std::vector<int64_t> packed_bytes;  // for each input: of its packed buffer; 0 where it is not const
};

std::string SerializePortable(const Portable& portable);

// Reads one that is said to be built for the workload and the target, and checks it.
absl::StatusOr<Portable> ParsePortable(std::string_view bytes, const Workload& workload,
                                       const Target& target);

// The checks of ParsePortable, on one that has been read (portable_check.cc).
absl::Status CheckPortable(const Portable& portable, const Workload& workload, const Target& target);

}  // namespace mycc
