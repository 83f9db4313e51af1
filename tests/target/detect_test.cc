// Detection of processors from recorded cpuid answers.
#include "codegen/target/detect.h"

#include <gtest/gtest.h>

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Host.h"
#include "tests/target/told_cpus.h"

namespace mycc {
namespace {

// A processor that can be changed a little.
class Processor : public FakeCpuid {
 public:
  using FakeCpuid::FakeCpuid;

  Processor With(uint32_t leaf, uint32_t subleaf, CpuidRegisters registers) const {
    Processor changed = *this;
    changed.leaves_[{leaf, subleaf}] = registers;
    return changed;
  }
  Processor WithXcr0(uint64_t xcr0) const {
    Processor changed = *this;
    changed.xcr0_ = xcr0;
    return changed;
  }
  // The same machine with another family, model and stepping word.
  Processor WithIdentity(uint32_t eax) const {
    CpuidRegisters one = Read(1, 0);
    one.eax = eax;
    return With(1, 0, one);
  }
};

// Read on a virtual machine on a Zen 3 server.
Processor Zen3() {
  return Processor({{{0x0, 0}, {0x0000000d, 0x68747541, 0x444d4163, 0x69746e65}},
                    {{0x1, 0}, {0x00a00f11, 0x01020800, 0xfffa3203, 0x178bfbff}},
                    {{0x7, 0}, {0x00000000, 0x219c07ab, 0x00400684, 0x00000010}},
                    {{0x80000001, 0}, {0x00a00f11, 0x40000000, 0x004003f3, 0x2fd3fbff}},
                    {{0x8000001d, 0}, {0x00000121, 0x01c0003f, 0x0000003f, 0x00000000}},
                    {{0x8000001d, 1}, {0x00000122, 0x01c0003f, 0x0000003f, 0x00000000}},
                    {{0x8000001d, 2}, {0x00000143, 0x01c0003f, 0x000003ff, 0x00000002}},
                    {{0x8000001d, 3}, {0x00004163, 0x03c0003f, 0x00007fff, 0x00000001}}},
                   0x7);
}

// Read on a virtual machine on an Emerald Rapids server.
Processor EmeraldRapids() {
  return Processor({{{0x0, 0}, {0x00000020, 0x756e6547, 0x6c65746e, 0x49656e69}},
                    {{0x1, 0}, {0x000c06f2, 0x08100800, 0xfffa3203, 0x1f8bfbff}},
                    {{0x4, 0}, {0x3c000121, 0x02c0003f, 0x0000003f, 0x00000000}},
                    {{0x4, 1}, {0x3c000122, 0x01c0003f, 0x0000003f, 0x00000000}},
                    {{0x4, 2}, {0x3c000143, 0x03c0003f, 0x000007ff, 0x00000000}},
                    {{0x4, 3}, {0x3c03c163, 0x04c0003f, 0x0003bfff, 0x00000004}},
                    {{0x7, 0}, {0x00000002, 0xf1bf27eb, 0x1b415fde, 0xbfd14410}},
                    {{0x7, 1}, {0x00001c30, 0x00000000, 0x00000000, 0x00000000}},
                    {{0x80000001, 0}, {0x00000000, 0x00000000, 0x00000121, 0x2c100800}}},
                   0x602e7);
}

TEST(Detect, Zen3) {
  EXPECT_EQ(PrintTarget(DetectTarget(Zen3(), 2)), "v1 cpu mcpu=znver3 l1d=32K l2=512K threads=2");
}

TEST(Detect, EmeraldRapids) {
  EXPECT_EQ(PrintTarget(DetectTarget(EmeraldRapids(), 16)),
            "v1 cpu mcpu=emeraldrapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=16");
}

TEST(Detect, WhatTheSystemDoesNotSaveIsNotThere) {
  // No tile state: AMX is off. No upper halves of the vector registers either: no AVX-512.
  EXPECT_EQ(DetectTarget(EmeraldRapids().WithXcr0(0xe7), 1).features, std::vector<std::string>{});
  const Target without_zmm = DetectTarget(EmeraldRapids().WithXcr0(0x7), 1);
  EXPECT_EQ(without_zmm.mcpu, "emeraldrapids");
  EXPECT_FALSE(FeaturesOf(without_zmm).avx512f);
  EXPECT_TRUE(FeaturesOf(without_zmm).avx2 && FeaturesOf(without_zmm).avxvnni);
  EXPECT_FALSE(FeaturesOf(DetectTarget(EmeraldRapids().WithXcr0(0x3), 1)).avx2);
}

TEST(Detect, XcrIsNotReadWhereTheSystemDoesNotAllowIt) {
  CpuidRegisters one = EmeraldRapids().Read(1, 0);
  one.ecx &= ~(1u << 27);
  EXPECT_EQ(VectorBytes(DetectTarget(EmeraldRapids().With(1, 0, one), 1)), 16);
}

TEST(Detect, AFeatureWithoutItsBaseIsNotUsed) {
  CpuidRegisters seven = EmeraldRapids().Read(7, 0);
  seven.ebx &= ~(1u << 16);  // avx512f hidden, the rest of AVX-512 left
  const CpuFeatureSet found = DetectFeatures(EmeraldRapids().With(7, 0, seven));
  EXPECT_EQ(found & Bit(CpuFeature::kAvx512Bw), 0u);
  EXPECT_EQ(found & Bit(CpuFeature::kAvx512Vnni), 0u);
  EXPECT_NE(found & Bit(CpuFeature::kAvx2), 0u);
}

TEST(Detect, NamesByFamilyAndModel) {
  const auto intel = [](uint32_t eax) { return DetectCpuName(EmeraldRapids().WithIdentity(eax)); };
  EXPECT_EQ(intel(0x000306c3), "haswell");
  EXPECT_EQ(intel(0x000406f1), "broadwell");
  EXPECT_EQ(intel(0x000906ea), "skylake");
  EXPECT_EQ(intel(0x000606a6), "icelake-server");
  EXPECT_EQ(intel(0x000806f8), "sapphirerapids");
  EXPECT_EQ(intel(0x000a06d1), "graniterapids");
  EXPECT_EQ(intel(0x00090672), "alderlake");
  const auto amd = [](uint32_t eax) { return DetectCpuName(Zen3().WithIdentity(eax)); };
  EXPECT_EQ(amd(0x00800f12), "znver1");
  EXPECT_EQ(amd(0x00830f10), "znver2");
  EXPECT_EQ(amd(0x00a20f10), "znver3");
  EXPECT_EQ(amd(0x00a10f11), "znver4");
  EXPECT_EQ(amd(0x00b00f21), "znver5");
}

TEST(Detect, OneIntelModelIsThreeGenerations) {
  const Processor machine = EmeraldRapids().WithIdentity(0x00050657);
  EXPECT_EQ(DetectCpuName(machine), "cooperlake");
  EXPECT_EQ(DetectCpuName(machine.With(7, 1, {})), "cascadelake");
  CpuidRegisters seven = machine.Read(7, 0);
  seven.ecx &= ~(1u << 11);
  EXPECT_EQ(DetectCpuName(machine.With(7, 1, {}).With(7, 0, seven)), "skylake-avx512");
}

TEST(Detect, UnknownProcessorsAreALevel) {
  EXPECT_EQ(DetectCpuName(EmeraldRapids().WithIdentity(0x000f06f0)), "x86-64-v4");
  EXPECT_EQ(DetectCpuName(EmeraldRapids().WithIdentity(0x000f06f0).WithXcr0(7)), "x86-64-v3");
  EXPECT_EQ(DetectCpuName(EmeraldRapids().WithIdentity(0x000f06f0).WithXcr0(0)), "x86-64-v2");
  const Target nothing = DetectTarget(Processor({}, 0), 0);
  EXPECT_EQ(PrintTarget(nothing), "v1 cpu mcpu=x86-64 l1d=32K l2=512K threads=1");
}

// The answers of the told processors are detected as these processors.
TEST(Detect, ToldProcessors) {
  const char* const expected[] = {
      "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2",
      "v1 cpu mcpu=skylake-avx512 l1d=32K l2=1M threads=2",
      "v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2",
      "v1 cpu mcpu=znver3 l1d=32K l2=512K threads=2",
      "v1 cpu mcpu=znver5 l1d=48K l2=1M threads=2",
  };
  const std::vector<std::string> names = ToldCpuNames();
  ASSERT_EQ(names.size(), std::size(expected));
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(PrintTarget(DetectTarget(*CpuidOf(names[i]), 2)), expected[i]);
  EXPECT_FALSE(CpuidOf("z80").has_value());
}

TEST(Detect, AgreesWithLlvmAboutThisMachine) {
  const Target host = DetectHostTarget();
  // Two names of one set of features are the same processor to us: LLVM 19 takes Emerald Rapids for Sapphire
  // Rapids.
  const auto llvms = FeaturesImpliedBy(llvm::sys::getHostCPUName().str());
  if (llvms.has_value() && host.mcpu.rfind("x86-64", 0) != 0) {
    EXPECT_EQ(FeaturesImpliedBy(host.mcpu), llvms) << host.mcpu << ", " << llvm::sys::getHostCPUName().str();
  }
  const auto features = llvm::sys::getHostCPUFeatures();
  const CpuFeatures ours = FeaturesOf(host);
  EXPECT_EQ(ours.avx2, features.lookup("avx2"));
  EXPECT_EQ(ours.fma, features.lookup("fma"));
  EXPECT_EQ(ours.avx512f, features.lookup("avx512f"));
  EXPECT_EQ(ours.avx512bf16, features.lookup("avx512bf16"));
  EXPECT_EQ(ours.amx_int8, features.lookup("amx-int8"));
  EXPECT_GE(host.threads, 1);
  EXPECT_GT(host.l1d_bytes, 0);
  EXPECT_GT(host.l2_bytes, host.l1d_bytes);
}

}  // namespace
}  // namespace mycc
