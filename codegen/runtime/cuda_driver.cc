#include "codegen/runtime/cuda_driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The name of the first function that the library lacks; null when it has all.
const char* FindAll(void* library, CudaDriver* driver) {
#define MYCC_FIND(member, suffix, parameters) \
  if (!Find(library, "cu" #member suffix, &driver->member)) return "cu" #member suffix;
  MYCC_CUDA_OF_BOTH(MYCC_FIND)
  MYCC_CUDA_OF_PROGRAMS(MYCC_FIND)
#undef MYCC_FIND
  return nullptr;
}

// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
std::string TextOf(const CudaDriver& driver, CuResult result) {
  const char *name = nullptr, *text = nullptr;
  driver.GetErrorName(result, &name);
  driver.GetErrorString(result, &text);
  if (name == nullptr || text == nullptr)
    return absl::StrCat("error ", result, ", which this driver has no words for");
  return absl::StrCat(text, " (", name, ")");
}

}  // namespace

absl::StatusOr<CudaDriver> CudaDriver::Load(const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no NVIDIA driver: ", library, " was not found where the dynamic loader looks (", dlerror(), ")"));
  }
  CudaDriver driver;
  if (const char* missing = FindAll(opened, &driver); missing != nullptr) {
    return absl::NotFoundError(absl::StrCat(library, " has no ", missing,
                                            "; expected the NVIDIA driver of CUDA 12.0 or a later one"));
  }
  if (const CuResult result = driver.Init(0); result != kCudaSuccess) {
    return absl::NotFoundError(
        absl::StrCat("no NVIDIA GPU that can be used: cuInit: ", TextOf(driver, result)));
  }
  return driver;
}

absl::StatusOr<const CudaDriver*> CudaDriver::Open() {
  static const absl::StatusOr<CudaDriver> driver = Load("libcuda.so.1");
  if (!driver.ok()) return driver.status();
  return &*driver;
}

absl::Status CudaDriver::StatusOf(absl::string_view call, CuResult result) const {
  if (result == kCudaSuccess) return absl::OkStatus();
  const std::string what = absl::StrCat(call, ": ", TextOf(*this, result));
  switch (result) {
    case kCudaErrorOutOfMemory: return absl::ResourceExhaustedError(what);
    case 46:   // devices unavailable
    case 100:  // no device
    case 101:  // no such device
    case 214:  // uncorrectable memory error
    case 226:  // contained memory error
    case 802:  // system not ready
      return absl::UnavailableError(what);
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // the context is destroyed
    case 710:  // device-side assertion
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 999:  // unknown
      return absl::AbortedError(what);
    default: return absl::InternalError(what);
  }
}

}  // namespace mycc
