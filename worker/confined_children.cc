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

// The folder that has this program's bin/ and lib/.
std::string Installation() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : program.parent_path().parent_path().string();
}

}  // namespace

Confinement ForBuilder(const Confinement& worker, const std::vector<std::string>& folders) {
  Confinement builder = worker;
  builder.writable = folders;
  builder.hides_current_folder = true;
  builder.readable.push_back(Installation());
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
  MYCC_ASSIGN_OR_RETURN(const std::vector<std::string> missing, MissingMeasures(child));
  const std::string words = absl::StrJoin(missing, "; ");
  if (words.empty() || child.mode == ConfinementMode::kWherePossible) return words;
  return absl::FailedPreconditionError(absl::StrCat("candidates would not be confined here: ", words,
                                                    "; expected a kernel that grants it to this user"));
}

}  // namespace mycc
