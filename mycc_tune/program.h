// mycc-tune without its hidden commands, so that a test's program can have others (tests/e2e/recorded.cc).
// Thread rule: called once, in main, before any thread.
#pragma once

namespace mycc {

// Does what the command line says, and returns the program's exit code.
int RunProgram(int argc, char** argv);

}  // namespace mycc
