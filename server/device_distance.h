// How unlike two targets are as devices, to choose whose schedules a search begins with. Pure functions.
#pragma once

#include <optional>

#include "codegen/target/target.h"

namespace mycc {

// 0 for equal ones. A class of devices (the width of vectors, a GPU's architecture) counts more than sizes
// within it: threads, caches, multiprocessors. Nullopt for a CPU and a GPU, which have no rule in common.
std::optional<double> DeviceDistance(const Target& a, const Target& b);

}  // namespace mycc
