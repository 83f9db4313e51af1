// The statements inside a loop that its LaneForm promises. Emitters rely on them. Pure.
#pragma once

#include <string>

#include "codegen/ir/stmt.h"

namespace mycc {

// Says what the loop lacks of its form's promise; empty when it lacks nothing.
std::string LaneFormFault(const For& loop);

}  // namespace mycc
