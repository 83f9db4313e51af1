// The files that are built with mycc and embedded in it: the runtime objects that every artifact is linked
// from, and dlpack.h. Constant data.
#pragma once

#include <string_view>
#include <vector>

namespace mycc {

// The relocatable objects, one each, that artifacts for CPUs and for GPUs are linked from.
std::string_view CpuArtifactObject();
std::string_view CudaArtifactObject();
// Shared libraries without code, which stand for libc, libm, libgomp and the loader when an artifact is
// linked.
std::vector<std::string_view> ArtifactStubs();
// dlpack.h.
std::string_view DlpackHeader();

}  // namespace mycc
