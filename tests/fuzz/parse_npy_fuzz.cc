// Any bytes are refused by the file's name, or are an array that survives being written.
#include <sstream>
#include <string>

#include "base/check.h"
#include "command/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto array = mycc::ParseNpy(in, "a.npy");
  if (!array.ok()) {
    MYCC_CHECK(array.status().message().substr(0, 7) == "`a.npy`") << array.status();
    return 0;
  }
  std::istringstream printed(mycc::PrintNpy(*array));
  const auto again = mycc::ParseNpy(printed, "again.npy");
  MYCC_CHECK(again.ok()) << again.status();
  MYCC_CHECK(again->descr == array->descr && again->shape == array->shape && again->bytes == array->bytes)
      << array->descr;
  return 0;
}
