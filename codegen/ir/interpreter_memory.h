// The interpreter's memory. Beside its value, each element records whether it was written, which iteration of
// a parallel loop touched it, which threads of a block touched it since they last synchronized, and, in
// functions with roles or asynchronous copies, which accesses are ordered before which.
//
// The order is kept by vector clocks. A clock has one component for each agent (the function, each role) and
// one for each channel on which asynchronous copies and products complete (each barrier, each agent's groups
// of copies and of products). An access
// is stamped with its component's time. It is ordered before another agent's access when that agent's clock
// has reached the stamp. So a missing wait is found in every interleaving, not only in unlucky ones. Thread
// rule: thread-compatible.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "codegen/expr/buffer.h"

namespace mycc::interpreter {

using VectorClock = std::vector<uint32_t>;
void Join(VectorClock* clock, const VectorClock& other);
bool Covers(const VectorClock& clock, const VectorClock& other);

// The part of an agent's state that orders its accesses to memory.
struct Accessor {
  int agent = 0;
  VectorClock clock;             // empty in functions without roles and asynchronous copies
  std::vector<uint32_t> fences;  // this agent's time at each of its fences
  // The current iteration of the outermost enclosing parallel loop, and that loop's first iteration. Numbers
  // are never used twice.
  uint32_t iteration = 0;
  uint32_t first_iteration = std::numeric_limits<uint32_t>::max();
  // The interval since the threads of the block, or of the role, last synchronized: a number that is never
  // used twice. 0 where threads are not distinguished.
  uint32_t interval = 0;
  // The threads that execute this code redundantly: `replication` consecutive ones from `thread` on.
  int64_t thread = 0, replication = 1;
};

// The threads that make an access, among those that execute the code.
enum class Threads {
  kFirst,     // the first one, for all
  kAll,       // each for itself
  kSome,      // one of them, unknown which
  kTogether,  // all of them, synchronized for it
};

// The completion of an asynchronous copy or product. An agent knows of it once its clock has reached `time`
// on `channel`.
struct Completion {
  int channel;
  uint32_t time;
  Threads threads;                       // those that issue it
  const std::vector<Accessor*>* agents;  // all agents, for their fences
};

class Memory {
 public:
  // `components`: of vector clocks; 0 for functions without roles and asynchronous copies. `tells_threads`:
  // several threads share the buffer, and their accesses are distinguished.
  Memory(Buffer buffer, int components, bool tells_threads);

  const BufferNode& buffer() const { return *buffer_; }
  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  int rank() const { return rank_; }
  int64_t dim(int d) const { return shape_[d]; }

  // The two buffers have bytes in common: a write to this one makes the other uninitialised.
  void LieOver(Memory* other) { over_.push_back(other); }
  // Begins the buffer's lifetime: it is uninitialised, and no parallel iteration before `accessor`'s has
  // touched it.
  void Begin(const Accessor& accessor);
  // Fills in an input before the function starts.
  void Initialize(int64_t flat, Scalar value);
  bool IsWritten(int64_t flat) const { return elements_[flat].scope == scope_; }
  Scalar Value(int64_t flat) const { return elements_[flat].value; }

  // Ordinary accesses. They return the fault ("is read before it is written"), or nullptr.
  const char* Read(int64_t flat, const Accessor& accessor, Threads threads, Scalar* value);
  const char* Write(int64_t flat, const Accessor& accessor, Threads threads, Scalar value);

  // Accesses of an asynchronous copy or product that `accessor` issues.
  const char* AsyncRead(int64_t flat, const Accessor& accessor, const Completion& completion, Scalar* value);
  const char* AsyncWrite(int64_t flat, const Accessor& accessor, const Completion& completion, Scalar value);
  // The same for the sums of products. Products of one channel run in order, so an access is ordered after
  // those of earlier products.
  const char* AsyncReadSum(int64_t flat, const Accessor& accessor, const Completion& completion,
                           Scalar* value);
  const char* AsyncWriteSum(int64_t flat, const Accessor& accessor, const Completion& completion,
                            Scalar value);

 private:
  // The thread that touched an element in an interval: its number, or kSeveral.
  struct Touched {
    uint32_t interval = 0;
    int64_t thread = 0;
  };
  struct Threaded {
    Touched written, read;
  };
  static constexpr int64_t kSeveral = -1;
  struct Element {
    Scalar value;
    uint32_t scope = 0;  // the lifetime (Begin) in which it was last written
    // Iterations of parallel loops: the last to write, the last to read, and the last other one to read.
    uint32_t writer = 0, reader = 0, other_reader = 0;
  };
  struct LastWrite {
    int component = 0;
    uint32_t time = 0;
    // The number of the writer's fence that makes it visible to asynchronous copies.
    uint32_t fence = kNeedsNoFence;
  };
  static constexpr uint32_t kNeedsNoFence = std::numeric_limits<uint32_t>::max();

  bool OfOtherIteration(uint32_t tag, const Accessor& accessor) const {
    return tag >= accessor.first_iteration && tag != accessor.iteration && tag >= first_iteration_;
  }
  // Whether earlier accesses to the element are ordered before the accessor's current time.
  const char* CheckWriteBefore(int64_t flat, const Accessor& accessor) const;
  const char* CheckReadsBefore(int64_t flat, const Accessor& accessor) const;
  // Checks the access against those to buffers with bytes in common.
  const char* TouchBytes(uint32_t interval, int64_t thread, bool is_write);
  // Check the access against those that other threads of the block have made since they last synchronized.
  const char* ReadByThread(int64_t flat, const Accessor& accessor, Threads threads);
  const char* WriteByThread(int64_t flat, const Accessor& accessor, Threads threads, Scalar value);
  // The accesses themselves, with the checks that need no clocks.
  const char* ReadElement(int64_t flat, const Accessor& accessor, Scalar* value);
  const char* WriteElement(int64_t flat, const Accessor& accessor, Scalar value);

  Buffer buffer_;
  int rank_;
  const int64_t* shape_;  // the buffer's
  size_t components_;
  uint32_t scope_ = 0;
  uint32_t first_iteration_ = 0;
  std::vector<Memory*> over_;  // buffers with bytes in common
  Touched bytes_;              // the last access to any element
  std::vector<Element> elements_;
  std::vector<Threaded> threaded_;      // by element; empty where threads are not told apart
  std::vector<LastWrite> last_writes_;  // by element; empty without components
  std::vector<uint32_t> last_reads_;    // by element and component
};

}  // namespace mycc::interpreter
