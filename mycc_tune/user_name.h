// The user of this process, as a server is told that does not know its callers. Thread rule: thread-safe.
#pragma once

#include <string>

namespace mycc {

std::string UserName();    // "ann"
std::string UserAtHost();  // "ann@build1"

// Whether an owner of jobs is the one who calls: `caller`, where the server knows its callers, else this
// user.
bool IsOwn(const std::string& owner, const std::string& caller);

}  // namespace mycc
