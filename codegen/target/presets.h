// Named targets, for compiling for a machine that is not at hand. Thread rule: constant data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/target/target.h"

namespace mycc {

std::optional<Target> FindPreset(const std::string& name);
std::vector<std::string> PresetNames();

}  // namespace mycc
