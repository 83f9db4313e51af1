// Compresses answers, and expands the page's files for clients that take no compressed ones. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace mycc {

std::string Gzip(std::string_view bytes);
// REQUIRES: `bytes` were made by gzip.
std::string Gunzip(std::string_view bytes);

}  // namespace mycc
