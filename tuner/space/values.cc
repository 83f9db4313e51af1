#include "tuner/space/values.h"

#include <cstdlib>

#include "base/check.h"

namespace mycc {

void Values::NotDecided(std::string_view name) {
  MYCC_CHECK(false) << "nothing decides " << name;
  std::abort();
}

}  // namespace mycc
