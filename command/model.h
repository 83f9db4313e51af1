// Reads a model for a target: import, the passes over the graph, and its cutting into kernels. Both programs
// read models by it, so that what is tuned is what is compiled.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/program/program.h"
#include "codegen/target/target.h"
#include "command/layouts.h"

namespace mycc {

struct ModelSource {
  std::string file;
  std::vector<std::string> shapes;  // --shape NAME=1x3x48x192 of each free input
  std::vector<std::string> values;  // --value NAME=0,2 or NAME=FILE.npy of each known input
  std::string dtype;                // --dtype bf16 or f16, for mixed precision; empty: types as they are
};

// Whether a file is a model, by its name: *.onnx.
bool IsModel(const std::string& file);

// The options as they decide what is compiled: "--shape x" and its shape, "--value axes" and its numbers or
// the digest of its file, "--dtype" and its type. Misuse for a text that is none.
absl::StatusOr<std::map<std::string, std::string>> OptionsOf(const ModelSource& source);

// The workloads of a .te file, or the kernels that a model is cut into for the target, and those that may
// take their place: all are tuned.
struct Tasks {
  std::vector<Workload> workloads;
  std::vector<Alternative> alternatives;
};
absl::StatusOr<Tasks> ReadTasks(const ModelSource& source, const Target& target);

// The model in its layouts, the preferred one first. Errors name the file. Misuse for a shape or a type that
// cannot be read.
absl::StatusOr<std::vector<LaidOutModel>> ReadLaidOut(const ModelSource& source, const Target& target);

}  // namespace mycc
