#include "mycc/code_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/ir/stmt.h"
#include "codegen/llvm/emit.h"
#include "mycc/launch_counts.h"
#include "tuner/space/machine.h"

namespace mycc {
namespace {

constexpr double kCoresThatFillMemory = 4;  // one core reaches about a fourth of all cores' bandwidth

// Adds the numbers of the registers that an instruction names: of vectors (xmm, ymm, zmm) and of AMX tiles.
void AddRegisters(const std::string& instruction, std::set<int>* vectors, std::set<int>* tiles) {
  for (size_t at = instruction.find('%'); at != std::string::npos; at = instruction.find('%', at + 1)) {
    const std::string name = instruction.substr(at + 1, 3);
    size_t end = at + 4;
    while (end < instruction.size() && absl::ascii_isdigit(instruction[end])) ++end;
    int number = 0;
    if (end <= at + 4 || !absl::SimpleAtoi(instruction.substr(at + 4, end - at - 4), &number)) continue;
    if (name == "xmm" || name == "ymm" || name == "zmm") vectors->insert(number);
    if (name == "tmm") tiles->insert(number);
  }
}

// N of "subq $N, %rsp", or of "addq $-N, %rsp", which is shorter for 128; 0 for all else.
int64_t FrameBytes(const std::string& instruction) {
  absl::string_view text = instruction;
  const bool is_sub = absl::ConsumePrefix(&text, "subq\t$"), is_add = absl::ConsumePrefix(&text, "addq\t$-");
  int64_t bytes = 0;
  if (!(is_sub || is_add) || !absl::ConsumeSuffix(&text, ", %rsp") || !absl::SimpleAtoi(text, &bytes))
    return 0;
  return std::max<int64_t>(bytes, 0);
}

// The bytes that a move stores of the vector register in its first operand; 0 where that is none.
int StoredBytes(const std::string& mnemonic, const std::string& operand) {
  const size_t at = operand.find("mm");
  if (at == std::string::npos || at == 0) return 0;
  const std::string suffix = mnemonic.substr(mnemonic.find("mov") + 3);
  if (suffix == "ss" || suffix == "d") return 4;
  if (suffix == "sd" || suffix == "q" || suffix == "lps" || suffix == "hps" || suffix == "lpd" ||
      suffix == "hpd")
    return 8;
  const char kind = operand[at - 1];
  return kind == 'x' ? 16 : kind == 'y' ? 32 : kind == 'z' ? 64 : 0;
}

// "64(%rsp)" and 64 for "vmovups %zmm3, 64(%rsp)": a vector, or a part of one, that is stored to the stack.
struct StackStore {
  std::string slot;
  int bytes = 0;
};
std::optional<StackStore> StackStoreOf(const std::string& instruction, bool has_frame_pointer) {
  const size_t tab = instruction.find('\t'), comma = instruction.rfind(", ");
  if (tab == std::string::npos || comma == std::string::npos || comma < tab) return std::nullopt;
  const std::string mnemonic = instruction.substr(0, tab), to = instruction.substr(comma + 2);
  if (!absl::StartsWith(mnemonic, "vmov") && !absl::StartsWith(mnemonic, "mov")) return std::nullopt;
  const bool is_on_stack =
      absl::StrContains(to, "(%rsp)") || (has_frame_pointer && absl::StrContains(to, "(%rbp)"));
  const int bytes = StoredBytes(mnemonic, instruction.substr(tab + 1, comma - tab - 1));
  if (!is_on_stack || bytes == 0) return std::nullopt;
  return StackStore{to.substr(0, to.find(')')), bytes};
}

// The facts of one function, line by line.
class FunctionReader {
 public:
  void Read(const std::string& instruction) {
    AddRegisters(instruction, &vectors_, &tiles_);
    frame_bytes_ += FrameBytes(instruction);
    has_frame_pointer_ |= instruction == "movq\t%rsp, %rbp";
    if (const auto store = StackStoreOf(instruction, has_frame_pointer_)) {
      int& bytes = slots_[store->slot];
      bytes = std::max(bytes, store->bytes);
    }
  }

  // The most of each fact, of `code` and of this function.
  void RaiseTo(CpuCode* code) const {
    int64_t spilled = 0;
    for (const auto& [slot, bytes] : slots_) spilled += bytes;
    code->vector_registers = std::max(code->vector_registers, static_cast<int>(vectors_.size()));
    code->tile_registers = std::max(code->tile_registers, static_cast<int>(tiles_.size()));
    code->frame_bytes = std::max(code->frame_bytes, frame_bytes_);
    code->spill_bytes = std::max(code->spill_bytes, spilled);
  }

 private:
  std::set<int> vectors_, tiles_;
  int64_t frame_bytes_ = 0;
  bool has_frame_pointer_ = false;    // elsewhere rbp is a register like others
  std::map<std::string, int> slots_;  // bytes of the largest store to each
};

std::string CpuText(const CpuCode& code, const Target& target) {
  const std::string tiles =
      code.tile_registers > 0 ? absl::StrFormat("%d of 8 tile registers, ", code.tile_registers) : "";
  return absl::StrFormat("%d of %d vector registers, %s%d B of stack frame, %d B of vectors spilled",
                         code.vector_registers, VectorRegisters(target), tiles, code.frame_bytes,
                         code.spill_bytes);
}

absl::StatusOr<Facts> CpuFacts(const KernelSpec& kernel, const Target& target) {
  EmitUnit unit{kernel.workload.name, kernel.lowered};
  unit.lowered.pack.body = MakeSeq({});  // it runs once for each set of weights
  MYCC_ASSIGN_OR_RETURN(const std::string assembly, EmitModule({unit}, target, EmitKind::kAssembly));
  return Facts{{"code", CpuText(ReadAssembly(assembly), target)}};
}

// The compiler's word about the kernel of a step; nullptr where there is none.
const CudaKernelResources* ResourcesOf(const absl::StatusOr<CudaImage>& image, const std::string& kernel) {
  if (!image.ok()) return nullptr;
  const auto found = std::ranges::find_if(
      image->kernels, [&](const CudaKernelResources& known) { return known.kernel == kernel; });
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
    facts.emplace_back(absl::StrCat("kernel ", facts.size() + 1),
                       GpuText(step, ResourcesOf(image, step.kernel), target));
  }
  MYCC_ASSIGN_OR_RETURN(const Facts counts, LaunchCountsOf(kernel.workload, target, kernel.trace));
  facts.insert(facts.end(), counts.begin(), counts.end());
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
  FunctionReader function;
  for (const absl::string_view line : absl::StrSplit(assembly, '\n')) {
    if (absl::EndsWith(line, ":") && !absl::StartsWith(line, ".")) {
      function.RaiseTo(&code);
      function = FunctionReader();
    }
    function.Read(std::string(absl::StripAsciiWhitespace(line)));
  }
  function.RaiseTo(&code);
  return code;
}

Facts NotKnown(const absl::Status& why) {
  return {{"code", absl::StrCat("not known: ", std::string(why.message()))}};
}

Facts CodeFactsOf(const KernelSpec& kernel, const Target& target) {
  const absl::StatusOr<Facts> facts =
      target.kind == TargetKind::kCuda ? GpuFacts(kernel, target) : CpuFacts(kernel, target);
  return facts.ok() ? *facts : NotKnown(facts.status());
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
