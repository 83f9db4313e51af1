#include "codegen/runtime/library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/runtime/elf_file.h"

namespace mycc {
namespace {

using Json = nlohmann::json;

absl::Status NoArtifact(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("`", path, "` is no library compiled by mycc: ", why));
}

// The module's name, from the soname MODULE.so: the file may have been renamed.
std::string ModuleOf(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return "";
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  for (const ElfW(Dyn)* entry = map->l_ld; strings != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SONAME) return std::filesystem::path(strings + entry->d_un.d_val).stem().string();
  }
  return "";
}

// Reads the target and the functions from the text of NAME.json. Exceptions of the JSON library end here.
absl::Status ReadDescription(const std::string& text, std::string* target,
                             std::vector<ArtifactFunction>* functions) {
  try {
    const Json json = Json::parse(text);
    *target = json.at("target").get<std::string>();
    for (const Json& function : json.at("functions")) {
      ArtifactFunction row;
      row.name = function.at("name").get<std::string>();
      row.workspace_bytes = function.at("workspace_bytes").get<int64_t>();
      for (const Json& arg : function.at("args")) {
        row.args.push_back({arg.at("name").get<std::string>(), arg.at("kind").get<std::string>(),
                            arg.at("dtype").get<std::string>(), arg.at("shape").get<std::vector<int64_t>>(),
                            arg.value("packed_bytes", int64_t{0}), arg.value("bounded", std::vector<int>())});
      }
      functions->push_back(std::move(row));
    }
  } catch (const Json::exception& error) {
    return absl::FailedPreconditionError(absl::StrCat("its JSON is malformed: ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace

struct Library::Impl {
  ~Impl() {
    if (handle != nullptr) dlclose(handle);
  }

  // The exported function `name`, or null.
  template <typename Function>
  Function* Find(const std::string& name) const {
    return reinterpret_cast<Function*>(dlsym(handle, name.c_str()));
  }

  absl::StatusOr<Entry> FindEntry(const std::string& symbol) const {
    if (Entry entry = Find<int32_t(DLTensor**, int32_t, void*)>(symbol)) return entry;
    return absl::NotFoundError(absl::StrCat("the library has no `", symbol, "`"));
  }

  absl::Status Call(const std::string& symbol, const std::vector<DLTensor*>& args, void* stream) const {
    MYCC_ASSIGN_OR_RETURN(const Entry entry, FindEntry(symbol));
    const int32_t code =
        entry(const_cast<DLTensor**>(args.data()), static_cast<int32_t>(args.size()), stream);
    return code == 0 ? absl::OkStatus() : Fail();
  }

  absl::Status Fail() const { return absl::InvalidArgumentError(last_error()); }

  absl::Status Load(const std::string& path) {
    if (const absl::Status whole = CheckElfIsWhole(path); !whole.ok())
      return NoArtifact(path, std::string(whole.message()));
    // The loader would search a name without a slash in the system's folders.
    handle = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return NoArtifact(path, dlerror());
    module = ModuleOf(handle);
    auto* json_text = Find<const char*()>(module + "_json");
    prepare = Find<int32_t(int32_t)>(module + "_prepare");
    last_error = Find<const char*()>(module + "_last_error");
    if (json_text == nullptr || prepare == nullptr || last_error == nullptr) {
      return NoArtifact(path, "it does not export MODULE_json, MODULE_prepare and MODULE_last_error");
    }
    json = json_text();
    if (absl::Status status = ReadDescription(json, &target, &functions); !status.ok())
      return NoArtifact(path, std::string(status.message()));
    // MODULE_prepare first checks the machine.
    if (prepare(device_id) != 0) return absl::FailedPreconditionError(last_error());
    return absl::OkStatus();
  }

  void* handle = nullptr;
  int device_id = 0;
  std::string module, json, target;
  std::vector<ArtifactFunction> functions;
  int32_t (*prepare)(int32_t) = nullptr;
  const char* (*last_error)() = nullptr;
};

Library::Library(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Library::~Library() = default;

absl::StatusOr<std::unique_ptr<Library>> Library::Open(const std::string& path, int device_id) {
  if (!std::filesystem::exists(path)) return absl::NotFoundError(absl::StrCat("no file `", path, "`"));
  auto impl = std::make_unique<Impl>();
  impl->device_id = device_id;
  MYCC_RETURN_IF_ERROR(impl->Load(path));
  return std::unique_ptr<Library>(new Library(std::move(impl)));
}

const std::string& Library::json() const { return impl_->json; }
const std::string& Library::module() const { return impl_->module; }
const std::string& Library::target() const { return impl_->target; }
bool Library::on_cuda() const { return absl::StartsWith(impl_->target, "v1 cuda "); }
int Library::device_id() const { return impl_->device_id; }
const std::vector<ArtifactFunction>& Library::functions() const { return impl_->functions; }

absl::Status Library::Prepare(int device_id) {
  return impl_->prepare(device_id) == 0 ? absl::OkStatus() : impl_->Fail();
}

absl::StatusOr<const ArtifactFunction*> Library::Find(const std::string& name) const {
  std::string names;
  for (const ArtifactFunction& function : functions()) {
    if (function.name == name || function.name == absl::StrCat(module(), "_", name)) return &function;
    absl::StrAppend(&names, names.empty() ? "" : ", ", function.name);
  }
  return absl::NotFoundError(
      absl::StrCat("no function `", name, "` in module `", module(), "`; expected one of: ", names));
}

absl::Status Library::Call(const std::string& name, const std::vector<DLTensor*>& args, void* stream) {
  MYCC_ASSIGN_OR_RETURN(const ArtifactFunction* function, Find(name));
  return impl_->Call(function->name, args, stream);
}

absl::Status Library::Pack(const std::string& name, const std::vector<DLTensor*>& args, void* stream) {
  MYCC_ASSIGN_OR_RETURN(const ArtifactFunction* function, Find(name));
  return impl_->Call(function->name + "_pack", args, stream);
}

absl::StatusOr<std::vector<double>> Library::Profile() {
  auto* profile = impl_->Find<int32_t(double*, int32_t)>(module() + "_profile");
  if (profile == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("module `", module(), "` has no profile; expected one compiled with --profile"));
  }
  std::vector<double> seconds(profile(nullptr, 0));
  profile(seconds.data(), static_cast<int32_t>(seconds.size()));
  return seconds;
}

absl::StatusOr<Library::Entry> Library::Symbol(const std::string& name) {
  MYCC_ASSIGN_OR_RETURN(const ArtifactFunction* function, Find(name));
  return impl_->FindEntry(function->name);
}

}  // namespace mycc
