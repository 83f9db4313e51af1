// The identity of a program: of its kernels, launches, places and constants. Pure.
#pragma once

#include <string>

#include "codegen/program/program.h"

namespace mycc {

// SHA-256 as hexadecimal digits. REQUIRES: the constants are there still.
std::string ProgramDigest(const ModelProgram& program);

}  // namespace mycc
