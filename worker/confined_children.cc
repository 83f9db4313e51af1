#include "worker/confined_children.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc {
namespace {

void AddFromEnvironment(const char* name, std::vector<std::string>* paths) {
  const char* const value = std::getenv(name);
  if (value != nullptr && *value != '\0') paths->emplace_back(value);
}

// The folders of this program and of the libraries beside it. The folder around them is not shown: for
// ~/bin/mycc-tune it is the user's home.
void AddInstallation(std::vector<std::string>* paths) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  paths->push_back(program.parent_path().string());
  const std::filesystem::path libraries = program.parent_path().parent_path() / "lib";
  if (std::filesystem::is_directory(libraries, error)) paths->push_back(libraries.string());
}

}  // namespace

Confinement ForBuilder(const Confinement& worker, const std::vector<std::string>& folders) {
  Confinement builder = worker;
  builder.writable = folders;
  builder.hides_current_folder = true;
  AddInstallation(&builder.readable);
  for (const char* name : {"CUDA_HOME", "VIRTUAL_ENV"}) AddFromEnvironment(name, &builder.readable);
  return builder;
}

Confinement ForRunner(const Confinement& worker, const std::string& scratch, const std::string& references) {
  Confinement runner = worker;
  runner.writable = {scratch};
  runner.hides_current_folder = true;
  runner.readable.push_back(references);
  return runner;
}

Confinement ForDevice(const Confinement& worker, const std::string& scratch) {
  Confinement runner = worker;
  runner.has_device = true;
  runner.readable.push_back(scratch);
  // The sockets of CUDA's service that shares a device between processes.
  runner.readable.emplace_back("/tmp/nvidia-mps");
  AddFromEnvironment("CUDA_MPS_PIPE_DIRECTORY", &runner.readable);
  return runner;
}

absl::StatusOr<std::string> Unconfined(const Confinement& child) {
  if (child.mode == ConfinementMode::kOff) return "everything (confinement is switched off)";
  const absl::StatusOr<std::vector<std::string>> missing = MissingMeasures(child);
  const std::string words =
      missing.ok()
          ? absl::StrJoin(*missing, "; ")
          : absl::StrCat("perhaps everything (a child that should tell did not: ", missing.status().message(),
                         ")");
  if (words.empty() || child.mode == ConfinementMode::kWherePossible) return words;
  return absl::FailedPreconditionError(absl::StrCat("candidates would not be confined here: ", words,
                                                    "; expected a kernel that grants it to this user"));
}

}  // namespace mycc
