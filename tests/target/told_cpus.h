// The answers of processors to cpuid, for tests of detection and of what depends on it. Thread rule: pure
// functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/target/detect.h"

namespace mycc {

class FakeCpuid : public CpuidSource {
 public:
  using Leaves = std::map<std::pair<uint32_t, uint32_t>, CpuidRegisters>;  // by leaf and subleaf
  FakeCpuid(Leaves leaves, uint64_t xcr0) : leaves_(std::move(leaves)), xcr0_(xcr0) {}

  CpuidRegisters Read(uint32_t leaf, uint32_t subleaf) const override {
    const auto it = leaves_.find({leaf, subleaf});
    return it == leaves_.end() ? CpuidRegisters() : it->second;
  }
  uint64_t ReadXcr0() const override { return xcr0_; }

 protected:
  Leaves leaves_;
  uint64_t xcr0_;
};

// haswell, skylake-avx512, sapphirerapids, znver3, znver5.
std::vector<std::string> ToldCpuNames();

// Such a processor, as far as detection asks: family and model, every feature that this project knows, the
// data caches, and the states that the system saves. nullopt for a name that is not among the above.
std::optional<FakeCpuid> CpuidOf(const std::string& name);

}  // namespace mycc
