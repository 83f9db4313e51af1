// Files embedded in mycc when it is built: the runtime objects that artifacts are linked with, and dlpack.h.
// Constant data.
#pragma once

#include <string_view>
#include <vector>

namespace mycc {

// The relocatable runtime objects for artifacts on CPUs and on GPUs.
std::string_view CpuArtifactObject();
std::string_view CudaArtifactObject();
// Stub shared libraries, linked in place of libc, libm, libgomp and the loader.
std::vector<std::string_view> ArtifactStubs();
// dlpack.h.
std::string_view DlpackHeader();

}  // namespace mycc
