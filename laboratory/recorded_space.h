// A tuning space that another tuner measured completely, every configuration with its times: the input of the
// laboratory. Thread rule: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mycc {

// A parameter of a kernel, and the values it may take.
struct SpaceParameter {
  std::string name;
  std::vector<std::string> values;  // as text: "16", "true", "float4"
  bool ordered = true;              // numbers all, in ascending order
};

// One configuration and what measuring it gave.
struct RecordedConfiguration {
  std::vector<int> choices;         // an index of a value for each parameter
  std::vector<double> run_seconds;  // each repetition; empty: it failed
  double compile_seconds = 0;       // 0: not recorded
  std::string failure;              // why it failed: "compile", "runtime", ...; empty: it did not
};

struct RecordedSpace {
  std::string name;    // "convolution"
  std::string device;  // "A100"
  std::vector<SpaceParameter> parameters;
  std::vector<RecordedConfiguration> configurations;  // the legal ones, in ascending order of their choices
  // The choices that the author of the space calls the default; they may be no configuration of it. Empty:
  // none.
  std::vector<int> default_choices;
};

}  // namespace mycc
