#include "tests/cuda/any_portable.h"

#include <elf.h>

#include <cstring>

namespace mycc {

std::string EmptyMachineCode() {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_EXEC;
  header.e_machine = 190;  // EM_CUDA
  header.e_shoff = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  const Elf64_Shdr section = {};
  std::string bytes(sizeof(header) + sizeof(section), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), &section, sizeof(section));
  return bytes;
}

Portable AnyPortable(const Workload& workload, const Target& target, const std::string& code_digest) {
  constexpr int64_t kHeaderBytes = 64;
  Portable portable;
  portable.target = PrintTarget(target);
  portable.code_digest = code_digest;
  portable.image.cubin = EmptyMachineCode();
  portable.image.kernels = {{.kernel = "trial_0", .registers = 32}};
  CudaStep call{.kernel = "trial_0", .threads = 32}, pack = call;
  int consts = 0;
  for (size_t i = 0; i < workload.inputs.size() + workload.outputs.size(); ++i)
    call.pointers.push_back({.argument = static_cast<int>(i), .offset = 0});
  for (const Argument& input : workload.inputs) {
    portable.packed_bytes.push_back(input.is_const ? kHeaderBytes + input.tensor->bytes() : 0);
    consts += input.is_const ? 1 : 0;
  }
  portable.program.call = {call};
  for (int i = 0; i < 2 * consts; ++i) pack.pointers.push_back({.argument = i, .offset = 0});
  if (consts > 0) portable.program.pack = {pack};
  return portable;
}

}  // namespace mycc
