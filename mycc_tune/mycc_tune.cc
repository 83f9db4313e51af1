// mycc-tune: the autotuner's server, workers and clients, and the hidden commands of their child processes.
#include <optional>

#include "mycc_tune/code_child.h"
#include "mycc_tune/program.h"
#include "server/search_child.h"
#include "worker/child_main.h"

int main(int argc, char** argv) {
  if (const std::optional<int> child = mycc::RunWorkerChild(argc, argv)) return *child;
  if (const std::optional<int> code = mycc::RunCodeChild(argc, argv)) return *code;
  if (const std::optional<int> search = mycc::RunSearchChild(argc, argv)) return *search;
  return mycc::RunProgram(argc, argv);
}
