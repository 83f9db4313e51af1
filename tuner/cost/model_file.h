// The file in which a learned cost model travels from a log to `mycc compile --model` or to another log:
//
//   mycc-model 1 cpu KIND      the format's version, the sort of device, and the log's name for the model
//   ...                        the bytes of Learner::Save, which carry their own digest
//
// Pure functions. Errors are InvalidArgument.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"

namespace mycc {

struct ModelFile {
  TargetKind device = TargetKind::kCpu;
  std::string kind;
  std::string bytes;

  bool operator==(const ModelFile&) const = default;
};

// REQUIRES: `kind` is a word.
std::string PrintModelFile(const ModelFile& file);
// The bytes are as they were found: loading them tells whether this build can use them.
absl::StatusOr<ModelFile> ParseModelFile(const std::string& contents);

}  // namespace mycc
