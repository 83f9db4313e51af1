// Writes the two texts beside a library: NAME.json for programs, and NAME.h for C and its readers. Pure.
#pragma once

#include <string>
#include <vector>

#include "codegen/artifact/entry.h"

namespace mycc {

// Pretty-printed JSON, also what MODULE_json() returns.
std::string LibraryJson(const LibrarySpec& spec);

// A self-contained C header (beside dlpack.h): every function with what its arguments must be.
std::string LibraryHeader(const LibrarySpec& spec, const std::vector<Entry>& entries);

// Bytes of workspace for one call with the target's number of threads.
int64_t WorkspaceBytes(const KernelSpec& kernel, const Target& target);

}  // namespace mycc
