#include "base/random_word.h"

#include <random>

#include "absl/strings/str_format.h"

namespace mycc {

std::string RandomWord() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

}  // namespace mycc
