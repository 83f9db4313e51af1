#include "codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/mutex.h"
#include "base/status.h"

namespace mycc {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "libnvrtc.so.13";

// The functions that mycc uses, declared here so that the library's header is not needed to build.
struct Nvrtc {
  using Program = void*;
  using Result = int;  // 0: success
  using GetSizeFn = Result (*)(Program, size_t*);
  using GetBytesFn = Result (*)(Program, char*);

  const char* (*GetErrorString)(Result);
  Result (*Version)(int* major, int* minor);
  Result (*CreateProgram)(Program*, const char* source, const char* name, int num_headers,
                          const char* const* headers, const char* const* include_names);
  Result (*DestroyProgram)(Program*);
  Result (*CompileProgram)(Program, int num_options, const char* const* options);
  GetSizeFn GetProgramLogSize, GetCUBINSize, GetPTXSize;
  GetBytesFn GetProgramLog, GetCUBIN, GetPTX;
  int major = 0, minor = 0;
};

// Adds every folder named lib below PREFIX/lib/python3*/site-packages/nvidia.
void AddPythonFolders(const std::string& prefix, std::vector<std::string>* folders) {
  std::error_code error;
  for (const fs::directory_entry& python : fs::directory_iterator(prefix + "/lib", error)) {
    if (python.path().filename().string().rfind("python3", 0) != 0) continue;
    const fs::path packages = python.path() / "site-packages" / "nvidia";
    for (fs::recursive_directory_iterator it(packages, error), end; it != end && !error;
         it.increment(error)) {
      if (it->path().filename() == "lib") folders->push_back(it->path().string());
    }
  }
}

// The folders that are searched after the loader's path.
std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0')
    folders.push_back(absl::StrCat(home, "/lib64"));
  folders.push_back("/usr/local/cuda/lib64");
  if (const char* venv = std::getenv("VIRTUAL_ENV"); venv != nullptr && *venv != '\0')
    AddPythonFolders(venv, &folders);
  return folders;
}

template <typename Function>
bool Find(void* handle, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(handle, name));
  return *function != nullptr;
}

absl::StatusOr<Nvrtc> FunctionsOf(void* handle) {
  Nvrtc nvrtc;
  if (Find(handle, "nvrtcGetErrorString", &nvrtc.GetErrorString) &&
      Find(handle, "nvrtcVersion", &nvrtc.Version) &&
      Find(handle, "nvrtcCreateProgram", &nvrtc.CreateProgram) &&
      Find(handle, "nvrtcDestroyProgram", &nvrtc.DestroyProgram) &&
      Find(handle, "nvrtcCompileProgram", &nvrtc.CompileProgram) &&
      Find(handle, "nvrtcGetProgramLogSize", &nvrtc.GetProgramLogSize) &&
      Find(handle, "nvrtcGetProgramLog", &nvrtc.GetProgramLog) &&
      Find(handle, "nvrtcGetCUBINSize", &nvrtc.GetCUBINSize) &&
      Find(handle, "nvrtcGetCUBIN", &nvrtc.GetCUBIN) && Find(handle, "nvrtcGetPTXSize", &nvrtc.GetPTXSize) &&
      Find(handle, "nvrtcGetPTX", &nvrtc.GetPTX) && nvrtc.Version(&nvrtc.major, &nvrtc.minor) == 0) {
    return nvrtc;
  }
  const char* why = dlerror();
  return Refusal(kName, ": ", why == nullptr ? "it has no version" : why);
}

absl::StatusOr<Nvrtc> Open() {
  if (void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL); handle != nullptr) return FunctionsOf(handle);
  const std::vector<std::string> folders = Folders();
  for (const std::string& folder : folders) {
    void* handle = dlopen(absl::StrCat(folder, "/", kName).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    MYCC_ASSIGN_OR_RETURN(const Nvrtc nvrtc, FunctionsOf(handle));
    // NVRTC opens its second library by name, and so finds this one, which is loaded already.
    dlopen(absl::StrCat(folder, "/libnvrtc-builtins.so.", nvrtc.major, ".", nvrtc.minor).c_str(),
           RTLD_NOW | RTLD_LOCAL);
    return nvrtc;
  }
  return absl::NotFoundError(absl::StrCat(
      "CUDA targets need NVRTC of CUDA 13, and ", kName,
      " was not found: not in the loader's own places, nor in ", absl::StrJoin(folders, ", "),
      "; set CUDA_HOME, or activate a Python environment that has the package ", "nvidia-cuda-nvrtc"));
}

// Opens the library at the first call and keeps it open; the table is constant then. Searched are the
// loader's path, $CUDA_HOME/lib64, /usr/local/cuda/lib64, and the packages of the Python environment
// $VIRTUAL_ENV. NotFound lists them; the next call searches again.
absl::StatusOr<const Nvrtc*> OpenNvrtc() {
  static Mutex mutex;
  static std::optional<Nvrtc> opened;
  MutexLock lock(&mutex);
  if (!opened) {
    MYCC_ASSIGN_OR_RETURN(opened, Open());
  }
  return &*opened;
}

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
  absl::StatusOr<std::string> Bytes(Nvrtc::GetSizeFn get_size, Nvrtc::GetBytesFn get) const {
    size_t size = 0;
    Nvrtc::Result result = get_size(program_, &size);
    std::string bytes(size, '\0');
    if (result == 0) result = get(program_, bytes.data());
    if (result == 0) return bytes;
    return absl::InternalError(absl::StrCat("NVRTC: ", nvrtc_.GetErrorString(result)));
  }
  // A text that ends in zero bytes.
  absl::StatusOr<std::string> Text(Nvrtc::GetSizeFn get_size, Nvrtc::GetBytesFn get) const {
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
