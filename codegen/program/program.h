// A compiled model's plan: kernels, each a workload, launched in order over tensors in one block of memory. A
// launch may be a library kernel instead. The same for every kind of target. Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/graph/graph.h"
#include "codegen/program/partition.h"

namespace mycc {

// Where the bytes of a launch's argument are.
struct TensorPlace {
  enum Kind { kInput /* of the call */, kOutput /* of the call */, kArena, kConstant };
  Kind kind;
  int64_t at;  // the input's, output's or constant's number; in the arena, the offset in bytes
};

struct KernelLaunch {
  int64_t kernel = -1;              // the number of the kernel, or -1 for a library call
  LibraryCall call;                 // where it is a library call
  std::vector<Buffer> tensors;      // inputs, then outputs: types and shapes
  std::vector<TensorPlace> places;  // of the tensors
  int64_t num_outputs = 1;
  std::vector<std::string> origins;  // the model's nodes
};

// Other kernels that compute what kernels of the program compute: one cut in another way, or those of images
// in another layout.
struct Alternative {
  // The same in each build: "HASH:KIND", with the workload hash of the one kernel, or "layout:LAYOUT".
  std::string name;
  std::vector<Workload> instead_of;  // distinct ones; a count is of the launches that are replaced
  std::vector<Workload> parts;       // distinct ones, in the order of execution; counts are of all the places
};

struct ModelProgram {
  std::string name;
  std::vector<NamedTensor> inputs, outputs;
  std::vector<Workload> kernels;  // distinct ones; their counts say how often each is launched
  std::vector<Constant> constants;
  std::vector<KernelLaunch> launches;  // in the order of execution
  int64_t arena_bytes = 0;             // the peak
  int64_t tensor_bytes = 0;            // the sum of all tensors in the arena
  // The same whatever was chosen. A layout comes last, after the cuts that it would replace. The cuts of the
  // most work come first; they add a third to the tasks at most.
  std::vector<Alternative> alternatives;
};

// Cuts a graph into kernels, and plans its memory. `chosen` has names of alternatives, one for a kernel at
// most; those that are none here change nothing. `streams`: see partition.h.
ModelProgram MakeProgram(const Graph& graph, const std::vector<std::string>& chosen = {},
                         const StreamTest& streams = {});

}  // namespace mycc
