// The command line of `mycc-tune simulate`. Thread rule: called once, from main.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace mycc {

void AddSimulate(CLI::App* app, std::function<absl::Status()>* command);

}  // namespace mycc
