// MYCC_CHECK aborts with a message on a programmer error: a broken invariant of ours. User input must never
// reach one; it gets a Status instead. Active in every build type.
#pragma once

#include <sstream>

namespace mycc {

class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();  // prints and aborts
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace mycc

#define MYCC_CHECK(cond) \
  if (cond) {            \
  } else                 \
    ::mycc::CheckFailure(__FILE__, __LINE__, #cond).stream()
