// The part of a library that is neither kernels nor the artifact runtime: the tables that describe its
// functions, and the exported symbols, each a jump into the runtime with its table.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/library/entry.h"

namespace mycc {

// An object file for the oldest x86-64, since its code runs before the CPU is checked. `json` is what
// MODULE_json() returns.
absl::StatusOr<std::string> EmitGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                     const std::string& json);

}  // namespace mycc
