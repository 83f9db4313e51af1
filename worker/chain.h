// Puts a kernel's tensors where they are within a model before it is timed. In a loop of calls of one kernel
// every thread finds in its own cache what it left there. In a model another kernel has written the inputs
// and the next one reads the outputs, each by its own division among the threads; and the weights of all
// kernels together seldom fit a cache. On cores that share no cache a line that another core has written
// takes some hundred nanoseconds.
//
// The division that stands for all others is the usual one: equal parts of each tensor, in the order of the
// threads. So a schedule is favoured whose threads keep to such parts. Thread rule: thread-compatible; works
// on the team of threads that the kernel runs on.
#pragma once

#include <cstdint>
#include <vector>

namespace mycc {

struct MemorySpan {
  uint8_t* data;
  int64_t bytes;
};

class Chain {
 public:
  // `constants` of more bytes than `cache_bytes`, of a core's own cache, are read from memory by each call.
  Chain(int threads, std::vector<MemorySpan> inputs_and_outputs, const std::vector<MemorySpan>& constants,
        int64_t cache_bytes);

  // Before a call: each thread writes its part of the inputs and outputs, which keep their contents. A call
  // whose threads write other parts of an output than they read later pays for the lines here, as it has to
  // take them from their owner.
  void Place();

 private:
  int threads_;
  std::vector<MemorySpan> written_, evicted_;
};

}  // namespace mycc
