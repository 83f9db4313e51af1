#include "codegen/artifact/cpu_needs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace mycc {
namespace {

enum Register : int64_t { kEax, kEbx, kEcx, kEdx };
constexpr int64_t kAvxState = 0x6;      // xmm and ymm
constexpr int64_t kAvx512State = 0xe6;  // and opmasks, zmm
constexpr int64_t kAmxState = 0x60000;  // tile configuration and data
constexpr int64_t kExtended = 0x80000001;

// Every feature that changes what LLVM may emit for arithmetic, loads, stores and control flow, by LLVM's
// name. Features that LLVM uses only on request (cryptography, cache control, virtual machines) are omitted:
// hypervisors hide them, and code does not depend on them.
constexpr MyccCpuNeed kRows[] = {
    {"sse3", 1, 0, kEcx, 0, 0},
    {"ssse3", 1, 0, kEcx, 9, 0},
    {"fma", 1, 0, kEcx, 12, kAvxState},
    {"sse4.1", 1, 0, kEcx, 19, 0},
    {"sse4.2", 1, 0, kEcx, 20, 0},
    {"movbe", 1, 0, kEcx, 22, 0},
    {"popcnt", 1, 0, kEcx, 23, 0},
    {"avx", 1, 0, kEcx, 28, kAvxState},
    {"f16c", 1, 0, kEcx, 29, kAvxState},
    {"bmi", 7, 0, kEbx, 3, 0},
    {"avx2", 7, 0, kEbx, 5, kAvxState},
    {"bmi2", 7, 0, kEbx, 8, 0},
    {"avx512f", 7, 0, kEbx, 16, kAvx512State},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512State},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512State},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512State},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512State},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512State},
    {"avx512vbmi", 7, 0, kEcx, 1, kAvx512State},
    {"avx512vbmi2", 7, 0, kEcx, 6, kAvx512State},
    {"gfni", 7, 0, kEcx, 8, 0},
    {"avx512vnni", 7, 0, kEcx, 11, kAvx512State},
    {"avx512bitalg", 7, 0, kEcx, 12, kAvx512State},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512State},
    {"amx-bf16", 7, 0, kEdx, 22, kAmxState},
    {"avx512fp16", 7, 0, kEdx, 23, kAvx512State},
    {"amx-tile", 7, 0, kEdx, 24, kAmxState},
    {"amx-int8", 7, 0, kEdx, 25, kAmxState},
    {"avxvnni", 7, 1, kEax, 4, kAvxState},
    {"avx512bf16", 7, 1, kEax, 5, kAvx512State},
    {"amx-fp16", 7, 1, kEax, 21, kAmxState},
    {"avxifma", 7, 1, kEax, 23, kAvxState},
    {"avxvnniint8", 7, 1, kEdx, 4, kAvxState},
    {"avxneconvert", 7, 1, kEdx, 5, kAvxState},
    {"avxvnniint16", 7, 1, kEdx, 10, kAvxState},
    {"sahf", kExtended, 0, kEcx, 0, 0},
    {"lzcnt", kExtended, 0, kEcx, 5, 0},
};

}  // namespace

absl::StatusOr<std::vector<MyccCpuNeed>> CpuNeeds(const Target& target) {
  if (llvm::X86::parseArchX86(target.mcpu, /*Only64Bit=*/true) == llvm::X86::CK_None) {
    return absl::InvalidArgumentError(absl::StrCat("target: mcpu `", target.mcpu,
                                                   "` is unknown; expected LLVM's name of a 64-bit x86 CPU"));
  }
  llvm::SmallVector<llvm::StringRef, 64> implied;
  llvm::X86::getFeaturesForCPU(target.mcpu, implied);
  llvm::StringMap<bool> enabled;
  for (llvm::StringRef feature : implied) enabled[feature] = true;
  for (const std::string& signed_name : target.features) {
    const bool on = signed_name[0] == '+';
    const llvm::StringRef name = llvm::StringRef(signed_name).drop_front();
    enabled[name] = on;
    llvm::X86::updateImpliedFeatures(name, on, enabled);
  }
  std::vector<MyccCpuNeed> needs;
  for (const MyccCpuNeed& row : kRows) {
    if (enabled.lookup(row.name)) needs.push_back(row);
  }
  return needs;
}

}  // namespace mycc
