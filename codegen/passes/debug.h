// What the compiler prints about its passes. Printing only: nothing here changes generated code. A program's main sets it once, before other
// threads start; the library never reads the environment.
#pragma once

#include <string>

namespace mycc {

struct PassDebug {
  int level = 0;            // MYCC_DEBUG: 5 prints the IR after each pass, "(unchanged)" where it is the same
  std::string print_after;  // MYCC_PRINT_AFTER: the name of one pass
  bool time = false;        // MYCC_TIME_PASSES: seconds of each pass
};
void SetPassDebug(const PassDebug& debug);
const PassDebug& GetPassDebug();

}  // namespace mycc
