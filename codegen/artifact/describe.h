// Writes the two texts that describe a library: NAME.json for programs, and the C header NAME.h. Computes the
// workspace that they state. Pure.
#pragma once

#include <string>
#include <vector>

#include "codegen/artifact/entry.h"

namespace mycc {

// Pretty-printed JSON; MODULE_json() returns it too.
std::string LibraryJson(const LibrarySpec& spec);

// A C header that needs only dlpack.h: every function, with the requirements of its arguments.
std::string LibraryHeader(const LibrarySpec& spec, const std::vector<Entry>& entries);

// Bytes of workspace for one call with the target's number of threads.
int64_t WorkspaceBytes(const KernelSpec& kernel, const Target& target);

}  // namespace mycc
