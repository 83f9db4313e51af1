// The tuning log of a command that is told no other: a file of the folder in which it is called.
#pragma once

namespace mycc {

inline constexpr char kDefaultLog[] = "tuning.db";

}  // namespace mycc
