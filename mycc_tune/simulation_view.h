// The progress of a simulation, in one line of a terminal that is drawn again and again. Thread rule: Update
// by one thread at a time, Clear when no thread is in it.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <utility>

#include "laboratory/simulation_watch.h"

namespace mycc {

// "17 %  120 of 700 searches, 24210 evaluations; now convolution on A100: evolutionary, noise". Pure.
std::string SimulationProgressText(const SimulationProgress& progress);

class SimulationView {
 public:
  // `width`: of the terminal, in characters. `seconds`: a clock that only goes forward.
  SimulationView(std::ostream* out, int width, std::function<double()> seconds)
      : out_(out), width_(width), seconds_(std::move(seconds)) {}

  // Draws the line when the last one is a fifth of a second old.
  void Update(const SimulationProgress& progress);
  // Leaves the line empty.
  void Clear();

 private:
  std::ostream* const out_;
  const int width_;
  const std::function<double()> seconds_;
  double drawn_at_ = 0;
  bool drawn_ = false;
};

}  // namespace mycc
