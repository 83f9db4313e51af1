// A trace: the ordered schedule steps of one candidate, as text that replays on the canonical workload.
//
//   v1
//   sketch contraction mr=6 nr=16 kc=256
//   split(t2.a0, [12, 86])
//   bind(t2.a0.0, parallel)
//
// The optional second line names the sketch and its decisions, so that they can be fitted to another shape;
// replay ignores it. Every other line is one primitive with its arguments; names that primitives had in
// earlier versions are read as well (trace_names.h). Parse(Print(trace)) == trace.
// Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

// An argument: a name (loop, block, buffer, word), an integer, or a list of either.
struct StepArg {
  using Names = std::vector<std::string>;
  using Ints = std::vector<int64_t>;
  std::variant<std::string, int64_t, Names, Ints> value;

  bool operator==(const StepArg&) const = default;
};

struct Step {
  std::string primitive;
  std::vector<StepArg> args;

  bool operator==(const Step&) const = default;
};

struct Trace {
  std::string sketch;                                      // empty for hand-written traces
  std::vector<std::pair<std::string, int64_t>> decisions;  // of the sketch, in its order
  std::vector<Step> steps;

  bool operator==(const Trace&) const = default;
};

std::string PrintTrace(const Trace& trace);
std::string PrintStep(const Step& step);
// The trace without its sketch: the program alone.
std::string PrintSteps(const Trace& trace);
// The sketch and its decisions: "contraction mr=6 nr=16". Empty for a trace without a sketch.
std::string PrintSketch(const Trace& trace);
// InvalidArgument "LINE:COLUMN: ..." on malformed text, an unknown version, or an unknown primitive.
absl::StatusOr<Trace> ParseTrace(const std::string& text);

}  // namespace mycc
