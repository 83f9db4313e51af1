// SHA-256 of bytes, as 64 lower-case hexadecimal digits: the identity of workloads, generated code and packed
// weights.
#pragma once

#include <string>
#include <string_view>

namespace mycc {

std::string Sha256Hex(std::string_view bytes);

}  // namespace mycc
