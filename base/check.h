// MYCC_CHECK aborts with a message when an invariant of the program is broken, which is a programmer's error.
// User input must never reach one; it gets a Status instead. Active in every build type.
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
