// Declares the command line of `mycc-tune auth ...`; mycc_tune/auth_commands.h does the work.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace mycc {

using Command = std::function<absl::Status()>;

// Adds `auth` with its subcommands; the one that is called puts what is to be done into `command`.
void AddAuthCommands(CLI::App* app, Command* command);

}  // namespace mycc
