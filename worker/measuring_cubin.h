// The machine code of a GPU runner's measuring kernels (worker/measuring_kernels.cu), kept from one worker to
// the next: NVRTC takes half a second for it, which is a good part of a short tune. Thread rule: any thread,
// and any number of processes.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace mycc {

// The code is kept under the digest of its source, its compiler and the GPU's architecture.
struct MeasuringCode {
  std::string source, compiler, arch;
};

// The code that `folder` has for it; where it has none, or has a damaged file, what `build` makes, which is
// kept there. A folder that is missing, or that anybody else may write, keeps nothing: the code judges all
// candidates. It fails as `build` does.
absl::StatusOr<std::string> MeasuringCubin(const std::string& folder, const MeasuringCode& code,
                                           const std::function<absl::StatusOr<std::string>()>& build);

}  // namespace mycc
