#include "codegen/cuda/nvrtc.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/cuda/nvrtc_library.h"
#include "codegen/cuda/ptxas_log.h"

namespace mycc {
namespace {

using Nvrtc = NvrtcLibrary;

// One compilation, with its log and its code.
class Compilation {
 public:
  explicit Compilation(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  ~Compilation() {
    if (program_ != nullptr) nvrtc_.DestroyProgram(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  // `arch` is NVRTC's name: sm_90a, or compute_90a for PTX. `variant` is an additional option.
  absl::Status Compile(const std::string& source, const std::string& arch, const char* variant = nullptr) {
    const std::string arch_option = absl::StrCat("-arch=", arch);
    // No cache: a cached compilation has no log. No warning 177: a kernel may leave declarations unused.
    std::vector<const char*> options = {arch_option.c_str(), "-std=c++17",         "-default-device",
                                        "-no-cache",         "-diag-suppress=177", "--ptxas-options=-v"};
    if (variant != nullptr) options.push_back(variant);
    Nvrtc::Result result = nvrtc_.CreateProgram(&program_, source.c_str(), "kernels.cu", 0, nullptr, nullptr);
    if (result == 0) {
      result = nvrtc_.CompileProgram(program_, static_cast<int>(options.size()), options.data());
      MYCC_ASSIGN_OR_RETURN(log_, Text(nvrtc_.GetProgramLogSize, nvrtc_.GetProgramLog));
    }
    if (result == 0) return absl::OkStatus();
    const std::string message = absl::StrCat("NVRTC ", nvrtc_.major, ".", nvrtc_.minor, " for ", arch, ": ",
                                             nvrtc_.GetErrorString(result), "\n", log_);
    constexpr Nvrtc::Result kInvalidOption = 5;
    return result == kInvalidOption ? Refusal(message) : absl::InternalError(message);
  }

  const std::string& log() const { return log_; }
  absl::StatusOr<std::string> Cubin() const { return Bytes(nvrtc_.GetCUBINSize, nvrtc_.GetCUBIN); }
  absl::StatusOr<std::string> Ptx() const { return Text(nvrtc_.GetPTXSize, nvrtc_.GetPTX); }

 private:
  absl::StatusOr<std::string> Bytes(Nvrtc::Result (*get_size)(Nvrtc::Program, size_t*),
                                    Nvrtc::Result (*get)(Nvrtc::Program, char*)) const {
    size_t size = 0;
    Nvrtc::Result result = get_size(program_, &size);
    std::string bytes(size, '\0');
    if (result == 0) result = get(program_, bytes.data());
    if (result == 0) return bytes;
    return absl::InternalError(absl::StrCat("NVRTC: ", nvrtc_.GetErrorString(result)));
  }
  // A text that ends in zero bytes.
  absl::StatusOr<std::string> Text(Nvrtc::Result (*get_size)(Nvrtc::Program, size_t*),
                                   Nvrtc::Result (*get)(Nvrtc::Program, char*)) const {
    MYCC_ASSIGN_OR_RETURN(std::string text, Bytes(get_size, get));
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  const Nvrtc& nvrtc_;
  Nvrtc::Program program_ = nullptr;
  std::string log_;
};

absl::StatusOr<CudaImage> CompileFor(const Nvrtc& nvrtc, const std::string& source, const Target& target,
                                     const char* variant) {
  Compilation compilation(nvrtc);
  MYCC_RETURN_IF_ERROR(compilation.Compile(source, target.arch, variant));
  CudaImage image = ReadPtxasLog(compilation.log());
  MYCC_ASSIGN_OR_RETURN(image.cubin, compilation.Cubin());
  return image;
}

}  // namespace

absl::StatusOr<CudaImage> CompileCuda(const std::string& source, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, OpenNvrtc());
  MYCC_ASSIGN_OR_RETURN(CudaImage image, CompileFor(*nvrtc, source, target, nullptr));
  const bool spills = std::ranges::any_of(image.kernels, [](const CudaKernelResources& kernel) {
    return kernel.spill_bytes > 0 || kernel.stack_bytes > 0;
  });
  // The comments of BLOCK_OF and TURNS in prelude.cc explain these options.
  if (spills && source.find("ONE_BLOCK") != std::string::npos)
    return CompileFor(*nvrtc, source, target, "-DONE_BLOCK");
  if (image.serialized_wgmma && source.find("ROLLED_TURNS") != std::string::npos)
    return CompileFor(*nvrtc, source, target, "-DROLLED_TURNS");
  return image;
}

absl::StatusOr<std::string> CompileToPtx(const std::string& source, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, OpenNvrtc());
  Compilation compilation(*nvrtc);
  MYCC_RETURN_IF_ERROR(compilation.Compile(source, absl::StrCat("compute", target.arch.substr(2))));
  return compilation.Ptx();
}

absl::StatusOr<std::string> CudaToolchain() {
  MYCC_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, OpenNvrtc());
  return absl::StrCat("nvrtc-", nvrtc->major, ".", nvrtc->minor);
}

}  // namespace mycc
