#include "mycc/code_facts.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/driver/compile.h"
#include "tuner/space/machine.h"

namespace mycc {
namespace {

constexpr double kCoresThatFillMemory = 4;  // one core reaches about a fourth of all cores' bandwidth

// The first vector register that a piece of an instruction names, by its number, and its bytes.
struct VectorRegister {
  int number = -1;
  int bytes = 0;
};
VectorRegister FirstRegister(const std::string& text) {
  for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1)) {
    const std::string name = text.substr(at + 1, 3);
    const int bytes = name == "xmm" ? 16 : name == "ymm" ? 32 : name == "zmm" ? 64 : 0;
    if (bytes == 0) continue;
    size_t end = at + 4;
    while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
    int number = 0;
    if (absl::SimpleAtoi(text.substr(at + 4, end - at - 4), &number)) return {number, bytes};
  }
  return {};
}

// N of "subq $N, %rsp", or 0.
int64_t FrameBytes(const std::string& instruction) {
  int64_t bytes = 0;
  if (!absl::StartsWith(instruction, "subq\t$") || !absl::EndsWith(instruction, ", %rsp")) return 0;
  const size_t begin = std::strlen("subq\t$");
  const std::string number = instruction.substr(begin, instruction.find(',') - begin);
  return absl::SimpleAtoi(number, &bytes) ? bytes : 0;
}

// The bytes of "vmovups %zmm3, 64(%rsp)": a whole vector that is stored to the stack; 0 for all else.
int64_t SpilledBytes(const std::string& instruction) {
  const bool is_move = absl::StartsWith(instruction, "vmov") || absl::StartsWith(instruction, "mov");
  const size_t comma = instruction.rfind(", ");
  if (!is_move || comma == std::string::npos) return 0;
  const std::string to = instruction.substr(comma);
  if (!absl::StrContains(to, "(%rsp)") && !absl::StrContains(to, "(%rbp)")) return 0;
  return FirstRegister(instruction.substr(0, comma)).bytes;
}

std::string CpuText(const CpuCode& code, const Target& target) {
  return absl::StrFormat("%d of %d vector registers, %d B of stack frame, %d B of vectors spilled",
                         code.vector_registers, VectorRegisters(target), code.frame_bytes, code.spill_bytes);
}

// The compiler's word about the kernel of a step; nullptr where there is none.
const CudaKernelResources* ResourcesOf(const absl::StatusOr<CudaImage>& image, const std::string& kernel) {
  if (!image.ok()) return nullptr;
  const auto found = std::find_if(image->kernels.begin(), image->kernels.end(),
                                  [&](const CudaKernelResources& known) { return known.kernel == kernel; });
  return found == image->kernels.end() ? nullptr : &*found;
}

std::string GpuText(const CudaStep& step, const CudaKernelResources* resources, const Target& target) {
  const std::string registers =
      resources == nullptr
          ? std::string("registers and spills not known without NVRTC")
          : absl::StrFormat("%d registers, %d B spilled", resources->registers, resources->spill_bytes);
  const int64_t shared = step.shared_bytes + (resources == nullptr ? 0 : resources->shared_bytes);
  return absl::StrFormat("%s, %d of %d B shared, %d threads x %d blocks", registers, shared,
                         target.smem_bytes, step.threads, step.grid[0] * step.grid[1] * step.grid[2]);
}

absl::StatusOr<Facts> GpuFacts(const KernelSpec& kernel, const Target& target) {
  const absl::StatusOr<CudaImage> image = CompileCuda(kernel.program.source, target);
  if (!image.ok() && !absl::IsNotFound(image.status())) return image.status();
  Facts facts;
  for (const CudaStep& step : kernel.program.call) {
    if (step.kernel.empty()) continue;  // zeroes memory
    facts.emplace_back(absl::StrCat("kernel ", facts.size() + 1),
                       GpuText(step, ResourcesOf(image, step.kernel), target));
  }
  return facts;
}

struct Peaks {
  double flops_per_second = 0;  // 0: not known for the workload's types
  double bytes_per_second = 0;
};

Peaks PeaksOf(const Target& target, DType dtype) {
  const Machine machine(target);
  const bool is_f64 = dtype == DType::kF64, is_known = is_f64 || dtype == DType::kF32;
  constexpr double kFlopsOfFma = 2;
  if (machine.gpu) {
    const GpuRow& row = machine.gpu->row;
    const double per_cycle = is_f64 ? row.f64_per_cycle : row.fma_per_cycle;
    return {is_known ? kFlopsOfFma * per_cycle * row.ghz * 1e9 * machine.gpu->sms : 0,
            row.dram_bytes_per_second};
  }
  const double lanes = machine.vector_bytes / DTypeBytes(dtype);
  const double cycles_per_second = machine.row.ghz * 1e9;
  return {
      is_known ? kFlopsOfFma * machine.row.fma_per_cycle * lanes * cycles_per_second * machine.threads : 0,
      machine.row.dram_bytes_per_cycle * cycles_per_second * std::min(machine.threads, kCoresThatFillMemory)};
}

// The type that the largest share of the arithmetic is in: that of the first argument.
DType TypeOf(const Workload& workload) {
  return workload.inputs.empty() ? workload.outputs[0]->dtype : workload.inputs[0].tensor->dtype;
}

}  // namespace

CpuCode ReadAssembly(const std::string& assembly) {
  CpuCode code;
  std::set<int> registers;  // of the function being read
  int64_t frame = 0, spilled = 0;
  bool is_packer = false;
  for (const absl::string_view raw : absl::StrSplit(assembly, '\n')) {
    const bool is_label = absl::EndsWith(raw, ":") && !absl::StartsWith(raw, ".");
    const std::string line(absl::StripAsciiWhitespace(raw));
    if (is_label) {  // another function
      registers.clear();
      frame = spilled = 0;
      is_packer = absl::StrContains(raw, "_pack_body");
    }
    if (is_packer) continue;
    std::string rest = line;
    for (VectorRegister used = FirstRegister(rest); used.number >= 0; used = FirstRegister(rest)) {
      registers.insert(used.number);
      const size_t next = rest.find("mm" + std::to_string(used.number));
      rest = rest.substr(next + 2);
    }
    frame += FrameBytes(line);
    spilled += SpilledBytes(line);
    code.vector_registers = std::max(code.vector_registers, static_cast<int>(registers.size()));
    code.frame_bytes = std::max(code.frame_bytes, frame);
    code.spill_bytes = std::max(code.spill_bytes, spilled);
  }
  return code;
}

absl::StatusOr<Facts> CodeFactsOf(const KernelSpec& kernel, const Target& target) {
  if (target.kind == TargetKind::kCuda) return GpuFacts(kernel, target);
  MYCC_ASSIGN_OR_RETURN(const std::string assembly, EmitText(kernel, target, "asm"));
  return Facts{{"code", CpuText(ReadAssembly(assembly), target)}};
}

std::string ShareOfPeak(const Workload& workload, const Target& target, std::optional<double> seconds) {
  if (!seconds || *seconds <= 0) return "not known without a measured time (mycc-tune tune, or mycc bench)";
  const DType dtype = TypeOf(workload);
  const Peaks peaks = PeaksOf(target, dtype);
  const double flops = CountFlops(workload) / *seconds, bytes = CountBytes(workload) / *seconds;
  std::string text;
  if (peaks.flops_per_second > 0)
    text = absl::StrFormat("%.0f %% of %s arithmetic (%.3f of %.3f TFLOP/s), ",
                           100 * flops / peaks.flops_per_second, DTypeName(dtype), flops / 1e12,
                           peaks.flops_per_second / 1e12);
  const double share = bytes / peaks.bytes_per_second;
  if (share > 1)
    return absl::StrCat(text, absl::StrFormat("%.1f GB/s from caches, beyond the memory's %.1f", bytes / 1e9,
                                              peaks.bytes_per_second / 1e9));
  return absl::StrCat(text, absl::StrFormat("%.0f %% of memory bandwidth (%.1f of %.1f GB/s)", 100 * share,
                                            bytes / 1e9, peaks.bytes_per_second / 1e9));
}

}  // namespace mycc
