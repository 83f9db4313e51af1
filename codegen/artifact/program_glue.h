// The code that runs a program on a CPU: it calls the kernels in order, with addresses in the caller's
// tensors, the arena and the weights. Internal to this folder. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/artifact/entry.h"
#include "codegen/artifact/pack_weights.h"
#include "codegen/artifact/program_library.h"

namespace mycc {

// The only exported call of a program's library.
absl::StatusOr<Entry> ProgramEntry(const ProgramSpec& spec);
std::string WeightsSymbol(const ProgramSpec& spec);
// int32_t MODULE_profile(double* seconds, int32_t count): see MyccProfile.
std::string ProfileSymbol(const ProgramSpec& spec);
// The symbol of a kernel before the suffix _body.
std::string ProgramKernelSymbol(const ProgramSpec& spec, const KernelSpec& kernel);
// Bytes of workspace behind the arena.
int64_t LaunchWorkspaceBytes(const ProgramSpec& spec);

absl::StatusOr<std::string> EmitProgramGlue(const ProgramSpec& spec, const Entry& entry,
                                            const WeightLayout& weights, const std::string& json);

}  // namespace mycc
