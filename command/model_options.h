// The options of a model, which all commands of both programs that read one have.
#pragma once

#include <CLI/CLI.hpp>

#include "command/model.h"

namespace mycc {

// All but the file, which not every command takes in the same way.
void AddModelOptions(CLI::App* app, ModelSource* source);

}  // namespace mycc
