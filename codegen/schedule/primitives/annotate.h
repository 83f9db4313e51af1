// Primitives that only mark a loop. A primitive is one LoopMark: where it may stand, the numbers that it
// takes, and the marks that it sets. Thread rule: constant data and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

enum class MarkedDevice : uint8_t { kAny, kCpu, kGpu, kHopper };

// The range of a step's argument number `at`; at 0, the loop's name, there is none.
struct MarkNumber {
  int at = 0;
  int64_t least = 0, most = 0;
  std::string_view unit = {};  // of the number, for the refusal: "stages"
};

// A step and the loop that it marks.
struct Marking {
  const Function& function;
  const Target& target;
  const StepArgs& args;
  const Path& path;
  const For& loop;
};

struct LoopMark {
  MarkedDevice device = MarkedDevice::kAny;
  std::optional<LoopKind> loop_kind = std::nullopt;  // of the loop; any when absent
  std::array<MarkNumber, 3> numbers = {};
  absl::Status (*check)(const Marking&) = nullptr;  // FailedPrecondition for what is not said above; or null
  void (*set)(const StepArgs&, LoopMarks*) = nullptr;
};

// Sets the mark on the loop that the first argument names. FailedPrecondition says what is wrong, and what
// was expected.
absl::StatusOr<Function> AnnotateLoop(const Function& function, const Target& target, const StepArgs& args,
                                      const LoopMark& mark);

// The primitive of a mark.
template <const LoopMark& mark>
absl::StatusOr<Function> Annotate(const Function& function, const Target& target, const StepArgs& args) {
  return AnnotateLoop(function, target, args, mark);
}

// Marks of thread blocks, of a CPU's memory, and of instructions (tensorize.cc). Their arguments are in
// table.cc.
extern const LoopMark kPipelineMark, kPersistMark, kStreamKMark, kPingpongMark, kMinBlocksPerSmMark,
    kMulticastClusterMark, kClusterReduceMark;
extern const LoopMark kPrefetchMark, kFetchNextMark, kNontemporalMark;
extern const LoopMark kTensorizeMark, kTensorizeTileMark;

}  // namespace mycc
