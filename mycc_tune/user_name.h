// The user of this process, as a server is told that does not know its callers. Thread rule: thread-safe.
#pragma once

#include <string>

namespace mycc {

std::string UserName();    // "ann"
std::string UserAtHost();  // "ann@build1"

}  // namespace mycc
