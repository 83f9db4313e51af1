// The commands of mycc, one file each. A command prints its result to `out` and returns a one-line error;
// misuse.h maps errors to exit statuses.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mycc/kernels.h"

namespace mycc {

struct CompileOptions {
  KernelSource source;
  std::string output_dir = ".";
  std::string module;      // empty: after the file
  std::string write_lock;  // a lock file to write; empty: none
  // The library is compared with the f32 model, on these inputs (NAME=FILE.npy) or on random ones.
  std::vector<std::string> check;
  bool check_random = false;
  bool profile = false;  // the library tells the times of a model's launches
  bool strict = false;   // only hits
  bool json = false;
  bool quiet = false;  // nothing but warnings
};
absl::Status CompileCommand(const CompileOptions& options, std::ostream& out);

struct ExplainOptions {
  KernelSource source;
  std::string emit;               // empty: the loop nest; ir; llvm or asm for a CPU; cuda or ptx for a GPU
  bool dot = false;               // a drawing of a model's launches instead, for Graphviz
  bool why = false;               // why each kernel's record was chosen, instead
  std::vector<std::string> diff;  // two records of the log, which are compared instead of FILE's kernels
};
absl::Status ExplainCommand(const ExplainOptions& options, std::ostream& out);

struct TasksOptions {
  ModelSource model;
  std::string target = "host";  // a model is cut into kernels for a target
  std::string output;           // a .te file; empty: none
  bool json = false;
};
absl::Status TasksCommand(const TasksOptions& options, std::ostream& out);

struct RunOptions {
  std::string library;
  int device = 0;                   // the GPU, where the library is for one
  std::string function;             // may be empty when there is one
  std::vector<std::string> inputs;  // NAME=FILE.npy; the others are random
  std::string output_dir;           // empty: outputs are summarized only
  uint64_t seed = 0;
};
absl::Status RunCommand(const RunOptions& options, std::ostream& out);

struct BenchOptions {
  std::string library;
  std::string other;     // timed in turn with it; empty: none
  int device = 0;        // the GPU, where the library is for one
  std::string function;  // empty: all
  int threads = 0;       // 0: as OpenMP decides
  int repeats = 0;       // timed samples of each function; 0: until the median is known well enough
  double seconds = 1;    // for each function, at most
  bool cold = false;     // arguments are out of all caches (a GPU's: of L2) when a call begins
  bool json = false;
  uint64_t seed = 0;
};
absl::Status BenchCommand(const BenchOptions& options, std::ostream& out);

}  // namespace mycc
