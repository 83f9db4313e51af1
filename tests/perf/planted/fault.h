// Faults of lowered code: what each class is, and every place of a kernel where one of it can stand and
// changes what the kernel does. A class's definition makes sure of the change, by the shape of the code or by
// a probe: a run of the kernel as it is that shows that the code in question is reached. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/perf/planted/kernel.h"

namespace mycc::planted {

struct Fault {
  std::string place;  // the statement, as it was
  LoweredFunction code;
};

struct FaultClass {
  const char* name;  // "a wait is left out"
  std::vector<Fault> (*plant)(const Kernel& kernel);
};

// Waits, arrivals, fences and phases between roles; groups of copies; slots of rings; clusters and blocks.
const std::vector<FaultClass>& PipelineFaults();
// Faults in bounds, nests, reductions, independent iterations, and barriers.
const std::vector<FaultClass>& LoopFaults();
// Indices, guards, what is never stored.
const std::vector<FaultClass>& ElementFaults();
// Beginnings of sums, terms, operands and tiles.
const std::vector<FaultClass>& ValueFaults();

}  // namespace mycc::planted
