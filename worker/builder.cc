#include "worker/builder.h"

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/library/compile.h"
#include "codegen/passes/lower.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

absl::StatusOr<v1::BuildResponse> Build(const v1::BuildRequest& request) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(request.workload(), "workload"));
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  absl::StatusOr<KernelSpec> kernel = absl::UnknownError("");
  if (request.trace().empty()) {
    kernel = CompileReference(workload, target);
  } else {
    MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(request.trace()));
    kernel = CompileKernel(workload, target, trace);
  }
  if (!kernel.ok()) return kernel.status();
  v1::BuildResponse response;
  MYCC_ASSIGN_OR_RETURN(const std::string toolchain, ToolchainOf(target));
  response.set_code_digest(CodeDigest(kernel->lowered, target, toolchain));
  response.set_library(absl::StrCat(request.directory(), "/", response.code_digest(), ".so"));
  if (!std::filesystem::exists(response.library())) {
    LibrarySpec library{.module = "trial", .target = target, .kernels = {}};
    library.kernels.push_back(*std::move(kernel));
    const absl::Status built = BuildSharedObject(library, response.library()).status();
    if (!built.ok()) {
      response.set_error(std::string(built.message()));  // the digest is known all the same
      return response;
    }
  }
  std::error_code error;
  response.set_code_bytes(static_cast<int64_t>(std::filesystem::file_size(response.library(), error)));
  return response;
}

}  // namespace

v1::BuildResponse HandleBuildRequest(const v1::BuildRequest& request) {
  absl::StatusOr<v1::BuildResponse> response = Build(request);
  if (response.ok()) return *std::move(response);
  v1::BuildResponse failure;
  failure.set_error(std::string(response.status().message()));
  return failure;
}

}  // namespace mycc
