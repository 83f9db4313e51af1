// Names that nobody else makes, on this host or another. Thread rule: any thread.
#pragma once

#include <string>

namespace mycc {

// 32 hexadecimal digits: 128 bits of the system's randomness.
std::string RandomWord();

}  // namespace mycc
