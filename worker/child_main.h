// The main function of the worker's children, the other side of child.h. Thread rule: called first in main,
// before any thread.
#pragma once

#include <optional>
#include <string>

namespace mycc {

// Runs the hidden command that `argv` names, until its worker ends it, and returns the program's exit code.
// Nullopt: it names none.
std::optional<int> RunWorkerChild(int argc, char** argv);

}  // namespace mycc
