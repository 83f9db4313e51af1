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
  std::vector<double> run_seconds;  // each repetition, or the objective's value; empty: it failed
  double compile_seconds = 0;       // 0: not recorded
  std::string failure;              // why it failed: "compile", "runtime", ...; empty: it did not
  // The time of the repetitions together, where it is known otherwise than as their sum.
  std::optional<double> measuring_seconds = std::nullopt;
  // The configuration's time where its source says which that is; otherwise it is the repetitions' mean.
  std::optional<double> seconds = std::nullopt;
};

struct RecordedSpace {
  std::string name;    // "convolution"
  std::string device;  // "A100"
  // The quantity in `run_seconds`: a time where it is empty. Values that are better when they are higher
  // stand as their reciprocals.
  std::string objective;
  bool higher_is_better = false;
  std::vector<SpaceParameter> parameters;
  std::vector<RecordedConfiguration> configurations;  // the legal ones, in ascending order of their choices
  // How many its author's constraints leave, where they are known; some may have no result.
  std::optional<int64_t> legal_configurations = std::nullopt;
  // The choices that the author of the space calls the default; they may be no configuration of it. Empty:
  // none.
  std::vector<int> default_choices;
};

}  // namespace mycc
