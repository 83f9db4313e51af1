// The command lines of `mycc-tune reverify` and `upgrade-check`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "mycc_tune/log_cli.h"
#include "proto/channel.h"

namespace mycc {

// `add_server` adds the options of a server's address.
using AddServerOptions = std::function<void(CLI::App* app, ServerAddress* server)>;
void AddKnowledgeCommands(CLI::App* app, Command* command, const AddServerOptions& add_server);

}  // namespace mycc
