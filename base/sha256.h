// SHA-256 of bytes, as 64 lower-case hexadecimal digits: the identity of workloads, generated code and packed
// weights.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace mycc {

std::string Sha256Hex(std::string_view bytes);

// The same of bytes that come in pieces. Thread rule: thread-compatible.
class Sha256Stream {
 public:
  Sha256Stream();

  void Add(std::string_view bytes);
  // REQUIRES: nothing is added afterwards.
  std::string Hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace mycc
