// Facts of a server that it sends with the answer to ListDevices, as metadata of the call: for people who
// look for a fault, and no part of the protocol. Thread rule: pure functions.
#pragma once

#include <string>

namespace mycc {

inline constexpr char kVersionMetadata[] = "mycc-version";   // "0.1.0"
inline constexpr char kTimeMetadata[] = "mycc-unix-micros";  // the server's wall clock

// The version of this program.
std::string ProgramVersion();

}  // namespace mycc
