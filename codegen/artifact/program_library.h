// Writes a whole model as a library in the artifact ABI: one function MODULE_run, its weights inside. Thread
// rule: functions are re-entrant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/library.h"
#include "codegen/program/program.h"

namespace mycc {

struct ProgramSpec {
  std::string module;  // a C identifier
  Target target;
  ModelProgram program;
  std::vector<KernelSpec> kernels;  // of the program, in its order
  // On a CPU: MODULE_profile(seconds, count) tells the seconds of each launch of the last call.
  bool profile = false;
};

// Writes DIR/MODULE.{so,h,json} and DIR/dlpack.h; all or none. Lets go of the program's constants.
absl::StatusOr<BuildReport> BuildProgramLibrary(ProgramSpec spec, const std::string& dir);

}  // namespace mycc
