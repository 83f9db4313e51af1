#include "codegen/cuda/nvrtc_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/mutex.h"
#include "base/status.h"

namespace mycc {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "libnvrtc.so.13";

// Every folder named lib below PREFIX/lib/python3*/site-packages/nvidia.
std::vector<std::string> PythonFolders(const std::string& prefix) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const fs::directory_entry& python : fs::directory_iterator(prefix + "/lib", error)) {
    if (python.path().filename().string().rfind("python3", 0) != 0) continue;
    const fs::path packages = python.path() / "site-packages" / "nvidia";
    for (fs::recursive_directory_iterator it(packages, error), end; it != end && !error;
         it.increment(error)) {
      if (it->path().filename() == "lib") folders.push_back(it->path().string());
    }
  }
  return folders;
}

// The folders that are searched after the loader's path.
std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0')
    folders.push_back(absl::StrCat(home, "/lib64"));
  folders.push_back("/usr/local/cuda/lib64");
  if (const char* venv = std::getenv("VIRTUAL_ENV"); venv != nullptr && *venv != '\0') {
    for (const std::string& folder : PythonFolders(venv)) folders.push_back(folder);
  }
  return folders;
}

template <typename Function>
bool Find(void* handle, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(handle, name));
  return *function != nullptr;
}

absl::Status FindFunctions(void* handle, NvrtcLibrary* nvrtc) {
  if (Find(handle, "nvrtcGetErrorString", &nvrtc->GetErrorString) &&
      Find(handle, "nvrtcVersion", &nvrtc->Version) &&
      Find(handle, "nvrtcCreateProgram", &nvrtc->CreateProgram) &&
      Find(handle, "nvrtcDestroyProgram", &nvrtc->DestroyProgram) &&
      Find(handle, "nvrtcCompileProgram", &nvrtc->CompileProgram) &&
      Find(handle, "nvrtcGetProgramLogSize", &nvrtc->GetProgramLogSize) &&
      Find(handle, "nvrtcGetProgramLog", &nvrtc->GetProgramLog) &&
      Find(handle, "nvrtcGetCUBINSize", &nvrtc->GetCUBINSize) &&
      Find(handle, "nvrtcGetCUBIN", &nvrtc->GetCUBIN) &&
      Find(handle, "nvrtcGetPTXSize", &nvrtc->GetPTXSize) && Find(handle, "nvrtcGetPTX", &nvrtc->GetPTX) &&
      nvrtc->Version(&nvrtc->major, &nvrtc->minor) == 0) {
    return absl::OkStatus();
  }
  const char* why = dlerror();
  return Refusal(kName, ": ", why == nullptr ? "it has no version" : why);
}

absl::StatusOr<NvrtcLibrary> Open() {
  NvrtcLibrary nvrtc;
  if (void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
    MYCC_RETURN_IF_ERROR(FindFunctions(handle, &nvrtc));
    return nvrtc;
  }
  const std::vector<std::string> folders = Folders();
  for (const std::string& folder : folders) {
    void* handle = dlopen(absl::StrCat(folder, "/", kName).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    MYCC_RETURN_IF_ERROR(FindFunctions(handle, &nvrtc));
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

}  // namespace

absl::StatusOr<const NvrtcLibrary*> OpenNvrtc() {
  static Mutex mutex;
  static const NvrtcLibrary* opened = nullptr;
  MutexLock lock(&mutex);
  if (opened == nullptr) {
    MYCC_ASSIGN_OR_RETURN(const NvrtcLibrary nvrtc, Open());
    opened = new NvrtcLibrary(nvrtc);
  }
  return opened;
}

}  // namespace mycc
