// Parts that the fake driver's two halves share: its state, and what every function of it does first.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/runtime/artifact/cuda_driver_types.h"
#include "tests/runtime/fake_cuda.h"

namespace mycc::fake_cuda {

inline constexpr CuResult kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500, kCaptureUnsupported = 900,
                          kUnknown = 999;

struct Context {
  int device;
  unsigned long long id;
};
struct Kernel {
  std::string name;
};
struct Capture {
  uint64_t id;
  int graph;
};
struct UserObject {
  void* object;
  void (*destroy)(void*);
};
struct Block {
  int64_t bytes;
  unsigned long long id;
};

struct State {
  std::recursive_mutex mutex;
  Device devices[2];
  std::string failing;
  std::vector<std::string> work;
  std::map<std::string, int> counts;
  std::unique_ptr<Context> primary[2];
  std::vector<std::unique_ptr<Context>> own;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::map<void*, Capture> captures;               // of streams
  std::map<int, std::vector<UserObject>> objects;  // of graphs
  std::vector<void*> destroyed;                    // what an unloaded artifact has left to the driver
  std::map<uintptr_t, Block> memory;
  uintptr_t last_stream = 16;
  uint64_t captures_begun = 0;
};
State& TheState();
Context* PrimaryOf(int device);
// The block of memory around an address, or null.
Block* BlockAt(uintptr_t address);

// The thread's contexts, the current one last. Nothing to destroy: artifacts call when a program ends.
struct ContextStack {
  Context* contexts[16];
  int size = 0;

  bool empty() const { return size == 0; }
  Context* back() const { return contexts[size - 1]; }
  void push_back(Context* context) { contexts[size++] = context; }
  void pop_back() { --size; }
  void clear() { size = 0; }
};
extern thread_local ContextStack current_contexts;
extern thread_local int capture_mode;

// The common part of every function: counted, and failing when it is told to or is not allowed now.
CuResult Enter(const char* function, bool allowed_in_capture);
#define FAKE(allowed_in_capture)                                \
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex); \
  State& state = TheState();                                    \
  static_cast<void>(state);                                     \
  if (const CuResult entered = Enter(__func__, allowed_in_capture); entered != kCudaSuccess) return entered

}  // namespace mycc::fake_cuda
