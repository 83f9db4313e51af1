// The name of the user who runs this process, for people.
#pragma once

#include <string>

namespace mycc {

// "ann@host".
std::string UserAtHost();

}  // namespace mycc
