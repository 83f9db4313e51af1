// Checks a kernel that another host built. The limits are those of the device and of the workload, never the
// description's own.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/cuda/portable.h"

namespace mycc {
namespace {

constexpr size_t kMostSteps = 1024, kMostKernels = 1024, kMostNameBytes = 300;
constexpr int64_t kMostGridX = (int64_t{1} << 31) - 1, kMostGridYZ = 65535, kMostThreads = 1024;
constexpr int64_t kMostCluster = 16, kMostRegisters = 255;
constexpr size_t kMostParameterBytes = 4096, kMapBytes = 128, kPointerBytes = 8;
constexpr size_t kMostRank = 5;
constexpr int64_t kMostBox = 256, kMostElementStride = 8, kStrideUnit = 16;
constexpr int64_t kMostDim = int64_t{1} << 32, kMostStride = (int64_t{1} << 40) - 1;
// A schedule pads tensors, and keeps partial results for the blocks of a wave.
constexpr int64_t kPaddedTimes = 16, kSpareBytes = int64_t{256} << 20;
constexpr uint16_t kCudaMachine = 190;  // EM_CUDA
constexpr size_t kDigestDigits = 64, kMostCompilerBytes = 64;

absl::Status CheckRange(const std::string& what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return WrongPortable(what, " of ", value, "; expected ", least, " to ", most);
}

bool IsSymbol(const std::string& name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::ranges::all_of(name, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsDigest(const std::string& text) {
  return text.size() == kDigestDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// "nvrtc-13.0"
bool IsCompiler(const std::string& name) {
  return name.size() <= kMostCompilerBytes &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos;
}

// Whether [offset, offset + bytes) lies within `size` bytes.
bool IsWithin(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// The driver is given the machine code without its size: all that the file names must lie within it. Text,
// which the driver would compile, is refused.
absl::Status CheckMachineCode(const std::string& code) {
  Elf64_Ehdr header;
  if (code.size() < sizeof(header) || code.compare(0, SELFMAG, ELFMAG) != 0)
    return WrongPortable("its machine code is not an ELF file");
  std::memcpy(&header, code.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kCudaMachine) {
    return WrongPortable("its machine code is not a GPU's");
  }
  const bool has_tables =
      header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum > 0 && header.e_shstrndx < header.e_shnum &&
      IsWithin(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), code.size()) &&
      (header.e_phnum == 0 ||
       (header.e_phentsize == sizeof(Elf64_Phdr) &&
        IsWithin(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), code.size())));
  if (!has_tables) return WrongPortable("its machine code is cut short");
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, code.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS && !IsWithin(section.sh_offset, section.sh_size, code.size()))
      return WrongPortable("section ", i, " of its machine code is cut short");
  }
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, code.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (!IsWithin(segment.p_offset, segment.p_filesz, code.size()))
      return WrongPortable("segment ", i, " of its machine code is cut short");
  }
  return absl::OkStatus();
}

// The bytes behind each argument of a function, and those of the workspace.
struct Memory {
  std::vector<int64_t> arguments;
  int64_t workspace = 0;
};

absl::StatusOr<int64_t> BytesBehind(const CudaOperand& operand, const Memory& memory) {
  int64_t bytes = memory.workspace;
  if (operand.argument != CudaOperand::kWorkspace) {
    if (operand.argument < 0 || operand.argument >= static_cast<int>(memory.arguments.size())) {
      return WrongPortable("argument ", operand.argument, " of a function with ", memory.arguments.size());
    }
    bytes = memory.arguments[operand.argument];
  }
  if (operand.offset < 0 || operand.offset >= bytes) {
    return WrongPortable(
        "byte ", operand.offset, " of ",
        operand.argument < 0 ? std::string("the workspace") : absl::StrCat("argument ", operand.argument),
        ", which has ", bytes);
  }
  return bytes - operand.offset;
}

absl::Status CheckMap(const CudaTensorMap& map, const Memory& memory) {
  MYCC_ASSIGN_OR_RETURN(const int64_t room, BytesBehind(map.operand, memory));
  const size_t rank = map.dims.size();
  if (rank < 1 || rank > kMostRank || map.strides.size() != rank - 1 || map.box.size() != rank ||
      map.element_strides.size() != rank) {
    return WrongPortable("a TMA descriptor of rank ", rank, ", ", map.strides.size(), " strides");
  }
  const std::set<int> swizzles = {0, 32, 64, 128};
  if (!swizzles.contains(map.swizzle_bytes))
    return WrongPortable("a swizzle of ", map.swizzle_bytes, " bytes");
  int64_t left = room - DTypeBytes(map.dtype);  // after the last element that it reaches
  for (size_t i = 0; i < rank; ++i) {
    MYCC_RETURN_IF_ERROR(CheckRange("a TMA descriptor's dimension", map.dims[i], 1, kMostDim));
    MYCC_RETURN_IF_ERROR(CheckRange("a TMA box", map.box[i], 1, kMostBox));
    MYCC_RETURN_IF_ERROR(CheckRange("an element stride", map.element_strides[i], 1, kMostElementStride));
    const int64_t stride = i == 0 ? DTypeBytes(map.dtype) : map.strides[i - 1];
    MYCC_RETURN_IF_ERROR(CheckRange("a TMA descriptor's stride", stride, 1, kMostStride));
    if (i > 0 && stride % kStrideUnit != 0)
      return WrongPortable("a stride of ", stride, " bytes; expected a multiple of ", kStrideUnit);
    if (left < 0 || map.dims[i] - 1 > left / stride)
      return WrongPortable("a TMA descriptor reaches beyond the ", room, " bytes of its tensor");
    left -= (map.dims[i] - 1) * stride;
  }
  return absl::OkStatus();
}

using SharedBytes = std::map<std::string, int64_t>;  // static, by kernel

absl::Status CheckStep(const CudaStep& step, const Memory& memory, const SharedBytes& kernels,
                       const Target& target) {
  const auto kernel = kernels.find(step.kernel);
  if (kernel == kernels.end()) return WrongPortable("a launch of a kernel that it does not have");
  MYCC_RETURN_IF_ERROR(CheckRange("a grid", step.grid[0], 1, kMostGridX));
  MYCC_RETURN_IF_ERROR(CheckRange("a grid's y", step.grid[1], 1, kMostGridYZ));
  MYCC_RETURN_IF_ERROR(CheckRange("a grid's z", step.grid[2], 1, kMostGridYZ));
  MYCC_RETURN_IF_ERROR(CheckRange("a block", step.threads, 1, kMostThreads));
  MYCC_RETURN_IF_ERROR(CheckRange("a cluster", step.cluster, 1, kMostCluster));
  if (step.grid[0] % step.cluster != 0)
    return WrongPortable("clusters of ", step.cluster, " in a grid of ", step.grid[0]);
  MYCC_RETURN_IF_ERROR(CheckRange("shared memory", step.shared_bytes, 0, target.smem_bytes - kernel->second));
  const size_t parameters = step.maps.size() * kMapBytes + step.pointers.size() * kPointerBytes;
  if (parameters > kMostParameterBytes)
    return WrongPortable(parameters, " bytes of parameters; expected at most ", kMostParameterBytes);
  for (const CudaTensorMap& map : step.maps) MYCC_RETURN_IF_ERROR(CheckMap(map, memory));
  for (const CudaOperand& pointer : step.pointers)
    MYCC_RETURN_IF_ERROR(BytesBehind(pointer, memory).status());
  return absl::OkStatus();
}

absl::StatusOr<SharedBytes> CheckKernels(const CudaImage& image, const Target& target) {
  if (image.kernels.size() > kMostKernels) return WrongPortable(image.kernels.size(), " kernels");
  SharedBytes kernels;
  for (const CudaKernelResources& kernel : image.kernels) {
    if (!IsSymbol(kernel.kernel)) return WrongPortable("a kernel's name that is no symbol");
    MYCC_RETURN_IF_ERROR(CheckRange("static shared memory", kernel.shared_bytes, 0, target.smem_bytes));
    MYCC_RETURN_IF_ERROR(CheckRange("registers", kernel.registers, 0, kMostRegisters));
    MYCC_RETURN_IF_ERROR(CheckRange("spilled memory", kernel.spill_bytes, 0, kSpareBytes));
    MYCC_RETURN_IF_ERROR(CheckRange("a stack", kernel.stack_bytes, 0, kSpareBytes));
    if (!kernels.emplace(kernel.kernel, kernel.shared_bytes).second)
      return WrongPortable("two kernels are called ", kernel.kernel);
  }
  return kernels;
}

// The most that a schedule of the workload needs besides its arguments.
int64_t MostWorkspace(const Workload& workload) {
  int64_t bytes = 0;
  for (const Argument& input : workload.inputs) bytes += input.tensor->bytes();
  for (const Stage& stage : workload.stages) bytes += stage.output->bytes();
  return kPaddedTimes * bytes + kSpareBytes;
}

absl::Status CheckPacked(const Portable& portable, const Workload& workload) {
  if (portable.packed_bytes.size() != workload.inputs.size())
    return WrongPortable("packed buffers for ", portable.packed_bytes.size(), " inputs of ",
                         workload.inputs.size());
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    const Argument& input = workload.inputs[i];
    const int64_t most = kPaddedTimes * input.tensor->bytes() + kSpareBytes;
    MYCC_RETURN_IF_ERROR(CheckRange("a packed buffer", portable.packed_bytes[i], input.is_const ? 1 : 0,
                                    input.is_const ? most : 0));
  }
  return absl::OkStatus();
}

// The arguments of a call, or of packing.
std::vector<int64_t> ArgumentBytes(const Portable& portable, const Workload& workload, bool of_pack) {
  std::vector<int64_t> inputs, outputs;
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    const Argument& input = workload.inputs[i];
    if (input.is_const) (of_pack ? outputs : inputs).push_back(portable.packed_bytes[i]);
    if (input.is_const == of_pack) inputs.push_back(input.tensor->bytes());
  }
  if (!of_pack) {
    for (const Buffer& output : workload.outputs) outputs.push_back(output->bytes());
  }
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  return inputs;
}

}  // namespace

absl::Status CheckPortable(const Portable& portable, const Workload& workload, const Target& target) {
  if (target.kind != TargetKind::kCuda) return WrongPortable("it is for a GPU; expected a GPU's target");
  if (portable.target != PrintTarget(target))
    return WrongPortable("it is for another target; expected ", PrintTarget(target));
  if (!IsDigest(portable.code_digest)) return WrongPortable("its code digest is none");
  if (!IsCompiler(portable.compiler)) return WrongPortable("its compiler's name is none");
  MYCC_RETURN_IF_ERROR(CheckMachineCode(portable.image.cubin));
  MYCC_ASSIGN_OR_RETURN(const SharedBytes kernels, CheckKernels(portable.image, target));
  MYCC_RETURN_IF_ERROR(CheckPacked(portable, workload));
  const CudaProgram& program = portable.program;
  MYCC_RETURN_IF_ERROR(CheckRange("a workspace", program.workspace_bytes, 0, MostWorkspace(workload)));
  if (program.call.empty() || program.call.size() > kMostSteps || program.pack.size() > kMostSteps) {
    return WrongPortable(program.call.size(), " launches of a call and ", program.pack.size(),
                         " of packing; expected 1 to ", kMostSteps);
  }
  const Memory of_call{ArgumentBytes(portable, workload, /*of_pack=*/false), program.workspace_bytes};
  const Memory of_pack{ArgumentBytes(portable, workload, /*of_pack=*/true), program.workspace_bytes};
  for (const CudaStep& step : program.call) MYCC_RETURN_IF_ERROR(CheckStep(step, of_call, kernels, target));
  for (const CudaStep& step : program.pack) MYCC_RETURN_IF_ERROR(CheckStep(step, of_pack, kernels, target));
  return absl::OkStatus();
}

}  // namespace mycc
