// Lower bounds of a workload's time on any device. A shorter time is refused. Pure functions.
#pragma once

#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A lower bound of one call's time, by generous limits: the operations that it must compute and the bytes
// that it must write, at rates above those of any device of the target's kind on sale.
double LeastSeconds(const Workload& workload, const Target& target);

}  // namespace mycc
