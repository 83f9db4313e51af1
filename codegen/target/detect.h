// Detects the target of a machine from its cpuid answers. These are passed in, so that any processor can be
// tested anywhere. Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "codegen/target/cpus.h"
#include "codegen/target/target.h"

namespace mycc {

struct CpuidRegisters {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

class CpuidSource {
 public:
  virtual ~CpuidSource() = default;
  // All zero for a leaf that the processor does not have.
  virtual CpuidRegisters Read(uint32_t leaf, uint32_t subleaf) const = 0;
  // XCR0: which register states the operating system saves. Called only when cpuid says that it may be read.
  virtual uint64_t ReadXcr0() const = 0;
};

// The features that both processor and operating system support.
CpuFeatureSet DetectFeatures(const CpuidSource& cpuid);

// LLVM's name by vendor, family and model. For an unknown processor: the highest x86-64 level that its
// features cover.
std::string DetectCpuName(const CpuidSource& cpuid);

Target DetectTarget(const CpuidSource& cpuid, int threads);

}  // namespace mycc
