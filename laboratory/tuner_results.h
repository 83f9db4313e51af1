// Reads the results of other tuners: cache files of Kernel Tuner, and T4 files (schema 1.0.0) of the
// auto-tuning community, of this project too. Which one a file is its members tell.
//
// Kernel Tuner: {"device_name", "kernel_name", "tune_params_keys", "tune_params", "cache": {"16,2":
// {"block_size_x": 16,
// ..., "time": 1.5 or "CompilationFailedConfig", "times": [1.5, ...], "compile_time": 262.1}}}, times in
// milliseconds. Its mean `time` is recomputed from `times`. A cache that is open, or was when its tuner
// ended, has no end.
//
// T4: {"schema_version", "metadata": {"timeunit"}, "results": [{"configuration": {...}, "times":
// {"compilation_time" or "compilation", "runtimes": [...]}, "invalidity": "correct" or why not,
// "measurements": [...]}]}, in milliseconds unless the metadata say otherwise.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "laboratory/result_table.h"

namespace mycc {

// `where` is the file, for errors: InvalidArgument with the entry and what was expected.
absl::StatusOr<ResultTable> ReadTunerResults(std::string text, const std::string& where);

}  // namespace mycc
