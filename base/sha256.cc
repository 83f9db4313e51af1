#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/check.h"

namespace mycc {
namespace {

std::string HexOf(const unsigned char (&digest)[SHA256_DIGEST_LENGTH]) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * sizeof(digest));
  for (unsigned char byte : digest) {
    hex.push_back(kHex[byte >> 4]);
    hex.push_back(kHex[byte & 15]);
  }
  return hex;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return HexOf(digest);
}

Sha256Stream::Sha256Stream() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  MYCC_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1)
      << "OpenSSL begins no SHA-256";
}

void Sha256Stream::Add(std::string_view bytes) {
  MYCC_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1) << "OpenSSL's SHA-256";
}

std::string Sha256Stream::Hex() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  MYCC_CHECK(EVP_DigestFinal_ex(context_.get(), digest, nullptr) == 1) << "OpenSSL's SHA-256";
  return HexOf(digest);
}

}  // namespace mycc
