// The main function of both programs: parses the command line, runs the chosen command, prints its error as
// one line, and returns the exit status.
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
