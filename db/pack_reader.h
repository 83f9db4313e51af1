// Reads and checks the lines of a signed pack (record_pack.h), without a log. A pack comes from others, so
// that it is checked as a whole before one of its records is parsed. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "base/signature.h"
#include "db/signer.h"

namespace mycc {

inline constexpr char kPackHeader[] = R"({"mycc_record_pack":1})";
// The signature is of these bytes and the manifest's line, so that no other program's signature by the same
// key is a pack's.
inline constexpr char kPackDomain[] = "mycc record pack v1\n";

struct PackManifest {
  int64_t records = 0;
  std::string sha256;
  Signer signer;
  int64_t signed_unix_micros = 0;
};

// The last two lines, without their newlines.
std::string ManifestLine(const PackManifest& manifest);
std::string SignatureLine(const std::string& signature);

// The lines of a pack, one after the other, with the digest of those before the manifest. Errors are
// InvalidArgument "ORIGIN:LINE: what is wrong; what was expected".
class PackReader {
 public:
  PackReader(std::istream& in, std::string origin) : in_(in), origin_(std::move(origin)) {}

  absl::Status ReadHeader();
  // True: line() is a record. False: it is the manifest.
  absl::StatusOr<bool> NextRecord();
  // Reads the signature, which is the end.
  absl::StatusOr<std::string> ReadSignature();

  const std::string& line() const { return line_; }
  int64_t records() const { return records_; }
  const std::string& sha256() const { return sha256_; }  // after the manifest
  absl::Status Bad(const std::string& what) const;

 private:
  absl::Status NextLine(const std::string& expected);
  void Digest();

  std::istream& in_;
  const std::string origin_;
  std::string line_;
  int64_t number_ = 0, records_ = 0;
  Sha256Stream digest_;
  std::string sha256_;
};

// Reads a whole pack, and checks every byte of it: one of the keys has signed it.
absl::StatusOr<PackManifest> CheckPack(std::istream& in, const std::string& origin,
                                       const std::vector<PublicKey>& trusted);

}  // namespace mycc
