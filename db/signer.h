// The signer of a record pack. A value.
#pragma once

#include <string>

namespace mycc {

// The key that a pack was signed with, and the name that its owner gave.
struct Signer {
  std::string key_id;
  std::string name;
};

}  // namespace mycc
