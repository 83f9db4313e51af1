// A kernel that another host could have built, for tests without NVRTC and without a GPU: its launches and
// its machine code are well formed, and do nothing.
#pragma once

#include <string>

#include "codegen/cuda/portable.h"

namespace mycc {

// An ELF file for a GPU, with an empty section.
std::string EmptyMachineCode();

// One launch over all arguments, and one of packing where there are const inputs.
Portable AnyPortable(const Workload& workload, const Target& target, const std::string& code_digest);

}  // namespace mycc
