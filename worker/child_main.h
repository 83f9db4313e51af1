// The main function of the worker's children, the other side of child.h. Thread rule: called first in main,
// before any thread.
#pragma once

#include <optional>
#include <string>

#include "proto/measure.pb.h"

namespace mycc {

// Answers the requests to a CPU's runner. The seam at which a test's program replaces the times of candidates
// that are built, run and verified as ever (tests/e2e/recorded.h); mycc-tune has worker/runner.h there.
using RunnerHandler = v1::RunnerResponse (*)(const v1::RunnerRequest&);

// Runs the hidden command that `argv` names, until its worker ends it, and returns the program's exit code.
// Nullopt: it names none.
std::optional<int> RunWorkerChild(int argc, char** argv, RunnerHandler run);
std::optional<int> RunWorkerChild(int argc, char** argv);

}  // namespace mycc
