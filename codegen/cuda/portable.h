// A GPU's kernel as it travels from a host that builds to one that measures: machine code, and a description
// of its launches. No code of a host travels. The measuring host writes the tables of its own glue from the
// description (artifact/portable_library.h), and the artifact runtime carries them out.
//
//   host that builds:    workload, trace --Lower, EmitCuda, NVRTC--> Portable --SerializePortable--> bytes
//   host that measures:  bytes --ParsePortable--> Portable --LinkPortable--> library
//
// The alternative is to lower the trace again on the measuring host, and to take the machine code alone. Time
// does not decide: for the 24 workloads of the GPU suite lowering takes 0.3 s and NVRTC 36 s, and a library
// is linked in some 12 ms. But two hosts could then work together only where both lower a trace to the same
// launches: at one version of this program. And it would protect nothing, since the machine code is not the
// measuring host's own in either case. So the description travels, and is not trusted: ParsePortable accepts
// only launches within the device's limits, over arguments of the workload's sizes. The effect of the machine
// code on the device is not checked here: as for any candidate, its outputs are.
//
// Errors are InvalidArgument, in words. Thread rule: values, and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

// The error of one that is not as it should be.
template <typename... Parts>
absl::Status WrongPortable(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("a built kernel: ", parts...));
}

// The checks of ParsePortable, on one that has been read (portable_check.cc).
absl::Status CheckPortable(const Portable& portable, const Workload& workload, const Target& target);

}  // namespace mycc
