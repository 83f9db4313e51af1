// The search space: named decisions with their choices, and a function that turns a point into a trace.
// Thread rule: immutable once built; functions are pure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// One decision: the values it may take. `ordered` values have neighbours that behave alike (tile sizes);
// others are names in disguise.
struct Decision {
  std::string name;
  std::vector<int64_t> choices;  // at least one, ascending when ordered
  bool ordered = true;
};

// A point: for each decision the index of its choice.
using Choice = std::vector<int>;

struct Space {
  std::vector<Decision> decisions;
  // Closed-form legality, cheap and pure; null: everything is legal. Instantiation may refuse more.
  std::function<bool(const Choice&)> constraint;
  // All legal points, where somebody has listed them; null: nobody has. They are what `constraint` leaves,
  // each once.
  std::shared_ptr<const std::vector<Choice>> listed = nullptr;

  double size() const;  // points before the constraint
  int64_t Value(const Choice& choice, const std::string& decision) const;
  bool Legal(const Choice& choice) const { return !constraint || constraint(choice); }
};

// A trace with open decisions, made by a rule for one workload and target.
struct Sketch {
  std::string name;  // "contraction": the rule, with a variant where a rule makes several
  Space space;
  // The trace of a legal point, decisions recorded in it. FailedPrecondition where the point turns out
  // illegal.
  std::function<absl::StatusOr<Trace>(const Choice&)> instantiate;
  Choice default_choice;  // the rule's own guess: legal, reasonable without any search
  // Others of the rule's: legal, and often better. A search tries them first, beside the default.
  std::vector<Choice> starts;
};

// The sketches of a workload, most specific first; never empty for a valid workload. rules/ has one file a
// block class. REQUIRES: canonical workload, here and below.
std::vector<Sketch> GenerateSketches(const Workload& canonical, const Target& target);

// A sketch with the schedule of its default choice. A sketch is only generated where that one replays, so
// that whoever needs the schedule need not replay it again.
struct SketchWithDefault {
  Sketch sketch;
  Trace trace;
  Function function;
};
std::vector<SketchWithDefault> GenerateSketchesWithDefaults(const Workload& canonical, const Target& target);

// The sketches that compute every stage of a chain for itself. GenerateSketches leaves them out on a GPU,
// where one pass is faster; they are defaults where no pass can be lowered.
std::vector<SketchWithDefault> SketchesOfSingleStages(const Workload& canonical, const Target& target);

// Whether the sketch of this name computes a chain of stages in one pass.
bool IsStreamedSketch(const std::string& name);
// Whether one of the sketches computes a chain of stages along one axis in one pass.
bool HasStreamedSketch(const Workload& canonical, const Target& target);

// Why none does, for users: what ends a chain of two products, and what the rules expect of one; each reason
// once. Empty where a sketch does, and where no product is computed from another.
std::vector<std::string> WhyNotStreamed(const Workload& canonical, const Target& target);

}  // namespace mycc
