#include "tests/llvm/jit.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

extern "C" int omp_get_max_threads();

namespace mycc {
namespace {

// Does what an artifact does when it is loaded (runtime/artifact/cpu.c).
absl::Status AskForTileRegisters(const Target& target) {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  if (!FeaturesOf(target).amx_tile || syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0)
    return absl::OkStatus();
  return absl::InternalError("Linux gives this process no tile registers");
}

using Body = void (*)(void* const*, uint8_t*, uint8_t*);

struct Unmap {
  void operator()(uint8_t* memory) const { munmap(memory, bytes); }
  size_t bytes = 0;
};

// Memory as callers have it, between bytes that must survive; the page after these cannot be read.
class TensorMemory {
 public:
  TensorMemory(int64_t bytes, DType dtype, Placement placement) : bytes_(bytes) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    size_ = (bytes + 256 + page - 1) / page * page;
    const auto mapped = static_cast<size_t>(size_ + page);
    void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MYCC_CHECK(memory != MAP_FAILED) << "no memory of " << mapped << " bytes: " << std::strerror(errno);
    memory_ = {static_cast<uint8_t*>(memory), Unmap{mapped}};
    std::memset(memory_.get(), kPoison, static_cast<size_t>(size_));
    MYCC_CHECK(mprotect(memory_.get() + size_, static_cast<size_t>(page), PROT_NONE) == 0)
        << std::strerror(errno);
    constexpr int64_t kLineBytes = 64;
    offset_ = placement == Placement::kLastByte
                  ? size_ - bytes
                  : kLineBytes + (placement == Placement::kOdd ? DTypeBytes(dtype) : 0);
  }
  uint8_t* data() { return memory_.get() + offset_; }
  bool Intact() const {
    const auto poisoned = [](uint8_t byte) { return byte == kPoison; };
    const uint8_t* const begin = memory_.get();
    return std::all_of(begin, begin + offset_, poisoned) &&
           std::all_of(begin + offset_ + bytes_, begin + size_, poisoned);
  }

 private:
  static constexpr uint8_t kPoison = 0xa5;
  int64_t bytes_;
  int64_t size_ = 0;  // that can be read
  int64_t offset_ = 0;
  std::unique_ptr<uint8_t, Unmap> memory_;
};

struct AlignedFree {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using AlignedMemory = std::unique_ptr<uint8_t, AlignedFree>;

// Filled with a pattern that is NaN as a float, so that what is used uninitialised shows.
AlignedMemory AllocateAligned(int64_t bytes) {
  const size_t size = static_cast<size_t>((bytes + 63) / 64 * 64 + 64);
  AlignedMemory memory(static_cast<uint8_t*>(std::aligned_alloc(64, size)));
  std::memset(memory.get(), 0xff, size);
  return memory;
}

absl::Status FromLlvm(llvm::Error error) { return absl::InternalError(llvm::toString(std::move(error))); }

}  // namespace

struct JitKernel::Impl {
  LoweredFunction lowered;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  Body body = nullptr, pack = nullptr;

  std::vector<TensorMemory> tensors;  // by parameter; const ones too
  std::vector<AlignedMemory> packed;  // by parameter, empty where not const
  AlignedMemory shared, threads;
  std::vector<void*> arguments;
};

JitKernel::JitKernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JitKernel::~JitKernel() = default;

absl::StatusOr<std::unique_ptr<JitKernel>> JitKernel::Compile(const LoweredFunction& lowered,
                                                              const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const std::string object,
                        EmitModule({EmitUnit{"k", lowered}}, target, EmitKind::kObject));
  MYCC_RETURN_IF_ERROR(AskForTileRegisters(target));
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto impl = std::make_unique<Impl>();
  impl->lowered = lowered;
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return FromLlvm(jit.takeError());
  impl->jit = std::move(*jit);
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      impl->jit->getDataLayout().getGlobalPrefix());
  if (!process) return FromLlvm(process.takeError());
  impl->jit->getMainJITDylib().addGenerator(std::move(*process));
  if (auto error = impl->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object)))
    return FromLlvm(std::move(error));
  const auto find = [&](const char* name, Body* out) -> absl::Status {
    auto& session = impl->jit->getExecutionSession();
    auto symbol =
        session.lookup({{&impl->jit->getMainJITDylib(), llvm::orc::JITDylibLookupFlags::MatchAllSymbols}},
                       impl->jit->mangleAndIntern(name));
    if (!symbol) return FromLlvm(symbol.takeError());
    *out = symbol->getAddress().toPtr<Body>();
    return absl::OkStatus();
  };
  MYCC_RETURN_IF_ERROR(find("k_body", &impl->body));
  MYCC_RETURN_IF_ERROR(find("k_pack_body", &impl->pack));
  return std::unique_ptr<JitKernel>(new JitKernel(std::move(impl)));
}

void JitKernel::Bind(const std::vector<NDArray>& inputs, Placement placement) {
  Impl& impl = *impl_;
  const auto& params = impl.lowered.kernel.params;
  impl.tensors.clear();
  impl.packed.clear();
  std::vector<void*> pack_arguments, pack_targets;
  for (size_t i = 0; i < params.size(); ++i) {
    const BufferNode& tensor = *params[i].buffer;
    impl.tensors.emplace_back(tensor.bytes(), tensor.dtype, placement);
    if (i < inputs.size())
      std::copy_n(inputs[i].bytes.begin(), inputs[i].bytes.size(), impl.tensors.back().data());
    impl.packed.emplace_back();
    if (params[i].kind != ParamKind::kConst) continue;
    impl.packed.back() = AllocateAligned(impl.lowered.packed_bytes[i]);
    pack_arguments.push_back(impl.tensors.back().data());
    pack_targets.push_back(impl.packed.back().get());
  }
  pack_arguments.insert(pack_arguments.end(), pack_targets.begin(), pack_targets.end());
  impl.shared = AllocateAligned(impl.lowered.workspace_shared_bytes);
  impl.threads = AllocateAligned(impl.lowered.workspace_thread_bytes * std::max(omp_get_max_threads(), 8));
  impl.pack(pack_arguments.data(), impl.shared.get(), impl.threads.get());
  impl.arguments.clear();
  for (size_t i = 0; i < params.size(); ++i) {
    impl.arguments.push_back(params[i].kind == ParamKind::kConst ? impl.packed[i].get()
                                                                 : impl.tensors[i].data());
  }
}

void JitKernel::Call() const {
  impl_->body(impl_->arguments.data(), impl_->shared.get(), impl_->threads.get());
}

std::vector<NDArray> JitKernel::Outputs() const {
  std::vector<NDArray> outputs;
  const auto& params = impl_->lowered.kernel.params;
  for (size_t i = 0; i < params.size(); ++i) {
    MYCC_CHECK(impl_->tensors[i].Intact()) << "the kernel wrote around " << params[i].buffer->name;
    if (params[i].kind != ParamKind::kOutput) continue;
    outputs.push_back(NDArray::Zeros(params[i].buffer->dtype, params[i].buffer->shape));
    std::vector<uint8_t>& bytes = outputs.back().bytes;
    std::copy_n(impl_->tensors[i].data(), bytes.size(), bytes.begin());
  }
  return outputs;
}

std::vector<NDArray> JitKernel::Run(const std::vector<NDArray>& inputs, Placement placement) const {
  auto* self = const_cast<JitKernel*>(this);
  self->Bind(inputs, placement);
  Call();
  return Outputs();
}

}  // namespace mycc
