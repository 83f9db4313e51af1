// Random names that are unique on all hosts (128 bits), for jobs and clients. Thread rule: any thread.
#pragma once

#include <string>

namespace mycc {

// 32 hexadecimal digits: 128 bits of the system's randomness.
std::string RandomWord();

}  // namespace mycc
