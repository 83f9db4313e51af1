// Any text is refused, or is a target that survives its print.
#include <string>

#include "base/check.h"
#include "codegen/target/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto target = mycc::ParseTarget(std::string(reinterpret_cast<const char*>(data), size));
  if (!target.ok()) return 0;
  const auto again = mycc::ParseTarget(mycc::PrintTarget(*target));
  MYCC_CHECK(again.ok()) << again.status() << "\n" << mycc::PrintTarget(*target);
  MYCC_CHECK(*again == *target) << mycc::PrintTarget(*target);
  std::string why;
  MYCC_CHECK(mycc::IsCompatible(*target, *target, &why)) << why;
  return 0;
}
