// The two ends of a kernel's way between hosts (cuda/portable.h): one host compiles it, another makes the
// library that its runner loads. The library's host code is the tables and the artifact runtime of the
// second host. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/artifact/library.h"
#include "codegen/cuda/portable.h"

namespace mycc {

// Compiles the only kernel of `spec`, which is for a GPU, without its host code. Errors: those of
// CompileCuda.
struct PortableBuild {
  Portable portable;
  BuildReport report;
};
absl::StatusOr<PortableBuild> BuildPortable(const LibrarySpec& spec, const std::string& code_digest);

// The compiler's report about a kernel that was compiled before.
BuildReport ReportOf(const Portable& portable);

// Writes a library in the artifact ABI, of one function, at `path`. REQUIRES: ParsePortable has checked the
// kernel for this workload and target.
absl::StatusOr<BuildReport> LinkPortable(const Portable& portable, const std::string& module,
                                         const Workload& workload, const Target& target,
                                         const std::string& path);

}  // namespace mycc
