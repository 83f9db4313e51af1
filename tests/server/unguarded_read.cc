// Refused by Clang's thread-safety analysis; compiled by the test `thread_safety` alone.
#include "base/mutex.h"

namespace mycc {

struct Counter {
  Mutex mutex;
  int count ABSL_GUARDED_BY(mutex) = 0;
  int Read() { return count; }
};

}  // namespace mycc
