// Lower bounds of a workload's time on any device. A shorter time is refused. Pure functions.
#pragma once

#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A time that one call of the workload cannot undercut, by bounds that are generous: what it must compute and
// write, at rates above those of any device of the target's kind that can be bought.
double LeastSeconds(const Workload& workload, const Target& target);

}  // namespace mycc
