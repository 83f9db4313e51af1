#include "tests/target/told_host.h"

#include <utility>

#include "base/check.h"
#include "codegen/target/this_machine.h"
#include "tests/target/told_cpus.h"

namespace mycc {
namespace {

std::optional<std::string>& ToldName() {
  static std::optional<std::string> name;
  return name;
}

Target ThisMachine() { return DetectTarget(ThisProcessor(), UsableThreads()); }

}  // namespace

Target DetectHostTarget() {
  constexpr int kThreads = 2;
  return ToldName() ? DetectTarget(*CpuidOf(*ToldName()), kThreads) : ThisMachine();
}

ToldCpu::ToldCpu(std::optional<std::string> name) : before_(ToldName()) {
  MYCC_CHECK(!name || CpuidOf(*name)) << "no processor to be told of: " << name.value_or("");
  ToldName() = std::move(name);
}

ToldCpu::~ToldCpu() { ToldName() = before_; }

bool RunsHere(const Target& code) {
  return IsCompatible(code, DetectHostTarget(), nullptr) && IsCompatible(code, ThisMachine(), nullptr);
}

}  // namespace mycc
