// The version of this program. Thread rule: a pure function.
#pragma once

#include <string>

namespace mycc {

std::string ProgramVersion();  // "0.1.0"

}  // namespace mycc
