// Ed25519 signatures (RFC 8032) with keys in PEM files, by OpenSSL. A private key's file is for its owner
// alone, as ssh has it. Thread rule: values; functions are re-entrant.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace mycc {

class PublicKey {
 public:
  // REQUIRES: an Ed25519 key of OpenSSL's.
  explicit PublicKey(std::shared_ptr<evp_pkey_st> key);
  // All keys of a file, at least one. InvalidArgument names the file and what it has instead.
  static absl::StatusOr<std::vector<PublicKey>> ReadAll(const std::string& path);

  // The first 16 hexadecimal digits of the SHA-256 of its DER form: a name for people and look-ups.
  const std::string& id() const { return id_; }
  bool Verifies(std::string_view message, std::string_view signature) const;

 private:
  friend class PrivateKey;

  std::shared_ptr<evp_pkey_st> key_;
  std::string id_;
};

class PrivateKey {
 public:
  // FailedPrecondition when others may read the file; InvalidArgument when it has no unencrypted Ed25519 key.
  static absl::StatusOr<PrivateKey> Read(const std::string& path);

  const PublicKey& public_key() const { return public_key_; }
  absl::StatusOr<std::string> Sign(std::string_view message) const;  // 64 bytes

 private:
  explicit PrivateKey(const std::shared_ptr<evp_pkey_st>& key) : public_key_(key) {}

  PublicKey public_key_;  // OpenSSL keeps both halves together
};

// Makes a key pair: NAME, which only its owner may read, and NAME.pub. AlreadyExists where either is there.
// Returns the public key.
absl::StatusOr<PublicKey> MakeKeyPair(const std::string& name);

}  // namespace mycc
