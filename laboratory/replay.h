// A recorded space as something to search: a sketch whose decisions are the space's parameters, and a device
// that answers with the recorded times. Thread rule: immutable once built.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "laboratory/recorded_sketch.h"
#include "laboratory/recorded_space.h"
#include "tuner/search/rng.h"
#include "tuner/space/space.h"

namespace mycc {

// The time that the source of a configuration says, or else the mean of its repetitions; nullopt when it
// failed.
std::optional<double> TimeOf(const RecordedConfiguration& configuration);

// The answer to one evaluation.
struct Evaluation {
  int configuration = 0;          // its number in the recorded space
  std::optional<double> seconds;  // absent when it failed
  double cost_seconds = 0;        // compiling it, and all its repetitions
};

class SpaceReplay {
 public:
  // InvalidArgument, with the name of the space, when there is nothing to search: no parameter, no
  // configuration, none that succeeded, a choice that is none, two configurations that are the same.
  static absl::StatusOr<SpaceReplay> Make(RecordedSpace space);

  const RecordedSpace& space() const { return *space_; }
  const Sketch& sketch() const { return sketch_; }
  // The configuration's number; nullopt for a choice that the space does not have.
  std::optional<int> NumberOf(const Choice& choice) const;

  // A configuration's time (TimeOf); nullopt when it failed.
  std::optional<double> Seconds(int configuration) const { return seconds_[configuration]; }
  double optimum_seconds() const { return optimum_seconds_; }
  // The optimum's time / a configuration's; 0 when it failed.
  double FractionOf(int configuration) const;
  // All configurations' fractions, the best first.
  const std::vector<double>& fractions() const { return fractions_; }
  int failures() const { return failures_; }
  double mean_cost_seconds() const { return mean_cost_seconds_; }  // of an evaluation
  bool compile_times_known() const { return compile_times_known_; }
  double raw_size() const { return sketch_.space.size(); }

  // With `noise`, the time is one of the repetitions, drawn at random.
  Evaluation Measure(int configuration, Rng* noise) const;

 private:
  explicit SpaceReplay(RecordedSpace space)
      : space_(std::make_shared<const RecordedSpace>(std::move(space))) {}

  std::shared_ptr<const RecordedSpace> space_;
  std::shared_ptr<const ConfigurationIndex> index_;
  Sketch sketch_;
  std::vector<std::optional<double>> seconds_;
  std::vector<double> fractions_;
  double optimum_seconds_ = 0;
  double mean_cost_seconds_ = 0;
  bool compile_times_known_ = false;
  int failures_ = 0;
};

}  // namespace mycc
