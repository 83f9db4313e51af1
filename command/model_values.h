// The values of a model's inputs that a command line gives. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "codegen/onnx/importer.h"

namespace mycc {

// A text of --value: NAME=0,2 or NAME=FILE.npy.
struct ModelValue {
  std::string name, value;
  bool is_file() const;
};
// Misuse for a text of another form.
absl::StatusOr<ModelValue> ParseModelValue(const std::string& text);

// Reads the value when the importer asks for it. Its errors say what the text or the file has, and what was
// expected.
OnnxValue ValueFor(const ModelValue& value);

}  // namespace mycc
