// Calls of a function with the numbers from 0 on. Those who have threads to lend implement it
// (thread_team.h). This one makes the calls in turn, on the thread that asks. Code without threads of its own
// takes one, and is the same on any number of threads as long as no call depends on another. Thread rule:
// thread-compatible.
#pragma once

#include <cstddef>
#include <functional>

namespace mycc {

class ParallelFor {
 public:
  virtual ~ParallelFor() = default;

  // The most calls that are under way at a time.
  virtual int width() const { return 1; }
  // Calls call(0), ..., call(count - 1), in any order, and returns when all have returned. REQUIRES: a call
  // does not Run on the same object.
  virtual void Run(size_t count, const std::function<void(size_t)>& call) {
    for (size_t i = 0; i < count; ++i) call(i);
  }
};

}  // namespace mycc
