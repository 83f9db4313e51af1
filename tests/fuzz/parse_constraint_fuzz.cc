// Any text is refused with a place, or is an expression; and as a constraint, it excludes the same
// configurations by dynamic programming, by a walk, and one by one.
#include <string>

#include "base/check.h"
#include "laboratory/constrained_space.h"

namespace mycc {
namespace {

std::vector<ConstrainedParameter> Parameters() {
  return {{"a", {PythonValue::OfInt(0), PythonValue::OfInt(3), PythonValue::OfInt(-2)}},
          {"b", {PythonValue::OfInt(1), PythonValue::OfFloat(0.5), PythonValue::OfBool(true)}},
          {"c", {PythonValue::OfText("float4"), PythonValue::OfText("")}},
          {"d", {PythonValue::OfInt(8)}}};
}

void CheckSaysExpected(const absl::Status& status) {
  const std::string message(status.message());
  MYCC_CHECK(message.find("column ") != std::string::npos && message.find("expected") != std::string::npos)
      << message;
}

void Check(const ConstrainedSpace& space) {
  int64_t one_by_one = 0, walked = 0;
  bool fails = false;
  const auto all = ConstrainedSpace::Create(space.parameters(), {});
  const absl::Status tried = all->ForEach([&](const std::vector<int>& choices) {
    const auto satisfies = space.Satisfies(choices);
    if (!satisfies.ok()) CheckSaysExpected(satisfies.status());
    fails |= !satisfies.ok();
    one_by_one += satisfies.ok() && *satisfies;
    return absl::OkStatus();
  });
  MYCC_CHECK(tried.ok()) << tried;
  const absl::Status walk = space.ForEach([&](const std::vector<int>&) {
    ++walked;
    return absl::OkStatus();
  });
  const auto count = CountConfigurations(space);
  MYCC_CHECK(walk.ok() == !fails && count.ok() == !fails) << walk << count.status();
  if (fails) return;
  MYCC_CHECK(walked == one_by_one && *count == one_by_one) << walked << " " << *count << " " << one_by_one;
}

}  // namespace
}  // namespace mycc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto space = mycc::ConstrainedSpace::Create(mycc::Parameters(), {text, "a <= d"});
  if (space.ok()) {
    mycc::Check(*space);
  } else {
    mycc::CheckSaysExpected(space.status());
  }
  return 0;
}
