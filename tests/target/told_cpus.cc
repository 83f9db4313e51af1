#include "tests/target/told_cpus.h"

namespace mycc {
namespace {

// Composed from what the vendors' manuals say of cpuid; each row is pinned by detect_test.cc.
const std::vector<std::pair<std::string, FakeCpuid>>& ToldCpus() {
  static const std::vector<std::pair<std::string, FakeCpuid>> cpus = {
      {"haswell", FakeCpuid({{{0x0, 0}, {0x0000001f, 0x756e6547, 0x6c65746e, 0x49656e69}},
                             {{0x1, 0}, {0x000306c3, 0x00000000, 0x38d01000, 0x00000000}},
                             {{0x4, 0}, {0x00000021, 0x01c0003f, 0x0000003f, 0x00000000}},
                             {{0x4, 1}, {0x00000043, 0x01c0003f, 0x000001ff, 0x00000000}},
                             {{0x7, 0}, {0x00000000, 0x00000128, 0x00000000, 0x00000000}},
                             {{0x80000001, 0}, {0x00000000, 0x00000000, 0x00000020, 0x00000000}}},
                            0x7)},
      {"skylake-avx512", FakeCpuid({{{0x0, 0}, {0x0000001f, 0x756e6547, 0x6c65746e, 0x49656e69}},
                                    {{0x1, 0}, {0x00050654, 0x00000000, 0x38d01000, 0x00000000}},
                                    {{0x4, 0}, {0x00000021, 0x01c0003f, 0x0000003f, 0x00000000}},
                                    {{0x4, 1}, {0x00000043, 0x03c0003f, 0x000003ff, 0x00000000}},
                                    {{0x7, 0}, {0x00000000, 0xd0030128, 0x00000000, 0x00000000}},
                                    {{0x80000001, 0}, {0x00000000, 0x00000000, 0x00000020, 0x00000000}}},
                                   0xe7)},
      {"sapphirerapids", FakeCpuid({{{0x0, 0}, {0x0000001f, 0x756e6547, 0x6c65746e, 0x49656e69}},
                                    {{0x1, 0}, {0x000806f8, 0x00000000, 0x38d01000, 0x00000000}},
                                    {{0x4, 0}, {0x00000021, 0x02c0003f, 0x0000003f, 0x00000000}},
                                    {{0x4, 1}, {0x00000043, 0x03c0003f, 0x000007ff, 0x00000000}},
                                    {{0x7, 0}, {0x00000000, 0xd0230128, 0x00005942, 0x02c00000}},
                                    {{0x7, 1}, {0x00000030, 0x00000000, 0x00000000, 0x00000000}},
                                    {{0x80000001, 0}, {0x00000000, 0x00000000, 0x00000020, 0x00000000}}},
                                   0x602e7)},
      {"znver3", FakeCpuid({{{0x0, 0}, {0x00000010, 0x68747541, 0x444d4163, 0x69746e65}},
                            {{0x1, 0}, {0x00a20f10, 0x00000000, 0x38d01000, 0x00000000}},
                            {{0x7, 0}, {0x00000000, 0x00000128, 0x00000000, 0x00000000}},
                            {{0x80000001, 0}, {0x00000000, 0x00000000, 0x00000020, 0x00000000}},
                            {{0x8000001d, 0}, {0x00000021, 0x01c0003f, 0x0000003f, 0x00000000}},
                            {{0x8000001d, 1}, {0x00000043, 0x01c0003f, 0x000003ff, 0x00000000}}},
                           0x7)},
      {"znver5", FakeCpuid({{{0x0, 0}, {0x00000010, 0x68747541, 0x444d4163, 0x69746e65}},
                            {{0x1, 0}, {0x00b00f21, 0x00000000, 0x38d01000, 0x00000000}},
                            {{0x7, 0}, {0x00000000, 0xd0230128, 0x00005942, 0x00000000}},
                            {{0x7, 1}, {0x00000030, 0x00000000, 0x00000000, 0x00000000}},
                            {{0x80000001, 0}, {0x00000000, 0x00000000, 0x00000020, 0x00000000}},
                            {{0x8000001d, 0}, {0x00000021, 0x02c0003f, 0x0000003f, 0x00000000}},
                            {{0x8000001d, 1}, {0x00000043, 0x03c0003f, 0x000003ff, 0x00000000}}},
                           0xe7)},
  };
  return cpus;
}

}  // namespace

std::vector<std::string> ToldCpuNames() {
  std::vector<std::string> names;
  for (const auto& [name, cpuid] : ToldCpus()) names.push_back(name);
  return names;
}

std::optional<FakeCpuid> CpuidOf(const std::string& name) {
  for (const auto& [known, cpuid] : ToldCpus()) {
    if (known == name) return cpuid;
  }
  return std::nullopt;
}

}  // namespace mycc
