#include "tuner/cost/bytes.h"

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace mycc {

std::string Seal(const std::string& format, const std::string& body) {
  ByteWriter file;
  file.PutString(format);
  file.PutString(Sha256Hex(body));
  file.PutString(body);
  return file.Take();
}

absl::StatusOr<std::string> Unseal(const std::string& format, const std::string& bytes) {
  ByteReader file(bytes);
  const std::string found = file.GetString(), digest = file.GetString();
  std::string body = file.GetString();
  if (found != format)
    return absl::InvalidArgumentError(absl::StrCat("these bytes are not a cost model of format ", format));
  if (!file.done())
    return absl::InvalidArgumentError("the cost model's bytes are cut short, or others follow them");
  if (Sha256Hex(body) != digest)
    return absl::InvalidArgumentError("the cost model's bytes are damaged: their digest is another");
  return body;
}

}  // namespace mycc
