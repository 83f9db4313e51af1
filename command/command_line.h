// A program's main: parses the command line, runs the command that it names, and turns its status into one
// line and an exit status.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace mycc {

// `app` knows the subcommands and what they set; `run` does what they asked for. Returns the exit status,
// as ExitStatus has it.
int RunCommandLine(CLI::App* app, int argc, char** argv, const std::function<absl::Status()>& run);

}  // namespace mycc
