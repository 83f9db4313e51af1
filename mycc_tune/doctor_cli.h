// The command line of `mycc-tune doctor`. Thread rule: called once, from main.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "proto/channel.h"

namespace CLI {
class App;
}

namespace mycc {

// `add_server` adds the options of a server that may be left out.
void AddDoctor(CLI::App* app, std::function<absl::Status()>* command,
               const std::function<std::shared_ptr<ServerAddress>(CLI::App*)>& add_server);

}  // namespace mycc
