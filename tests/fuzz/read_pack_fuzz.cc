// Any bytes are refused in words, as a pack that no known key has signed: whoever can write a file cannot
// make the program read a record of it.
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/signature.h"
#include "base/temporary_folder.h"
#include "db/pack_reader.h"

namespace {

std::vector<mycc::PublicKey> MakeKey() {
  const mycc::TemporaryFolder folder = mycc::TemporaryFolder::Create().value();
  return {mycc::MakeKeyPair(folder.path() + "/key").value()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<mycc::PublicKey>& trusted = *new std::vector<mycc::PublicKey>(MakeKey());
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const absl::Status checked = mycc::CheckPack(in, "pack", trusted).status();
  MYCC_CHECK(absl::IsInvalidArgument(checked) || absl::IsFailedPrecondition(checked)) << checked;
  return 0;
}
