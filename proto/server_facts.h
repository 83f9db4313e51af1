// Facts that a server sends as metadata of a call, and that are no part of the protocol: its version and time
// with the answer to ListDevices, for people who look for a fault; the caller's name with the lists of jobs
// and owners, by which a client knows which ones are its own. Thread rule: constants.
#pragma once

namespace mycc {

inline constexpr char kVersionMetadata[] = "mycc-version";   // "0.1.0"
inline constexpr char kTimeMetadata[] = "mycc-unix-micros";  // the server's wall clock
inline constexpr char kCallerMetadata[] = "mycc-caller";     // "ann"; left out where callers have no names

}  // namespace mycc
