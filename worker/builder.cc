#include "worker/builder.h"

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/artifact/library.h"
#include "codegen/artifact/portable_library.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/driver/compile.h"
#include "codegen/workload/parse.h"
#include "worker/measuring_kernels.h"

namespace mycc {
namespace {

constexpr char kModule[] = "trial";

// The reason, in words, why a GPU's kernel is slow whatever else it does; empty: none. It is found before the
// device is troubled with the kernel.
std::string WhyHopeless(const BuildReport& report) {
  if (report.spill_bytes > 0)
    return absl::StrCat("not measured: a thread spills ", report.spill_bytes, " bytes of its ",
                        report.registers, " registers to memory");
  if (report.serialized_wgmma)
    return absl::StrCat("not measured: the compiler made tensor-core operations wait for each other: ",
                        report.log);
  if (report.ignored_setmaxnreg)
    return absl::StrCat("not measured: the compiler ignored the registers that warps give each other: ",
                        report.log);
  return "";
}

void Describe(const BuildReport& report, v1::CodeResources* resources) {
  resources->set_registers_per_thread(static_cast<uint32_t>(report.registers));
  resources->set_spill_bytes(static_cast<uint32_t>(report.spill_bytes));
  resources->set_shared_bytes(static_cast<uint32_t>(report.shared_bytes));
}

// Whether an error of compiling and linking, as opposed to scheduling, is this host's: files that cannot be
// written, no compiler.
bool IsOfTheHost(const absl::Status& error) {
  return absl::IsNotFound(error) || absl::IsPermissionDenied(error) || absl::IsResourceExhausted(error);
}

void Fail(const absl::Status& error, bool is_of_the_host, v1::BuildResponse* response) {
  response->set_error(std::string(error.message()));
  response->set_unfit(is_of_the_host);
}

// The library of a kernel, into `response`.
absl::Status BuildLibraryOf(KernelSpec kernel, const Target& target, bool is_reference,
                            v1::BuildResponse* response) {
  std::error_code error;
  const bool on_gpu = target.kind == TargetKind::kCuda;
  // A library that is there is not built again, but for what the compiler says of a GPU's candidate.
  if (!std::filesystem::exists(response->library()) || (on_gpu && !is_reference)) {
    LibrarySpec library{.module = kModule, .target = target, .kernels = {}};
    library.kernels.push_back(std::move(kernel));
    MYCC_ASSIGN_OR_RETURN(const BuildReport report, BuildSharedObject(library, response->library()));
    if (on_gpu) Describe(report, response->mutable_resources());
    const std::string hopeless = is_reference ? "" : WhyHopeless(report);
    if (!hopeless.empty()) {
      std::filesystem::remove(response->library(), error);
      return absl::FailedPreconditionError(hopeless);
    }
  }
  response->mutable_resources()->set_code_bytes(std::filesystem::file_size(response->library(), error));
  return absl::OkStatus();
}

// The kernel as it travels to another host, into `response`.
absl::Status BuildPortableOf(KernelSpec kernel, const Target& target, v1::BuildResponse* response) {
  const absl::StatusOr<std::string> known = ReadFile(response->library(), kMostPortableBytes);
  if (known.ok()) {
    // An equal one was built lately.
    MYCC_ASSIGN_OR_RETURN(const Portable portable, ParsePortable(*known, kernel.workload, target));
    Describe(ReportOf(portable), response->mutable_resources());
    response->mutable_resources()->set_code_bytes(portable.image.cubin.size());
    return absl::OkStatus();
  }
  LibrarySpec library{.module = kModule, .target = target, .kernels = {}};
  library.kernels.push_back(std::move(kernel));
  MYCC_ASSIGN_OR_RETURN(const PortableBuild build, BuildPortable(library, response->code_digest()));
  Describe(build.report, response->mutable_resources());
  const std::string hopeless = WhyHopeless(build.report);
  if (!hopeless.empty()) return absl::FailedPreconditionError(hopeless);
  const std::string bytes = SerializePortable(build.portable);
  response->mutable_resources()->set_code_bytes(build.portable.image.cubin.size());
  return WriteFileAtomically(response->library(), bytes);
}

// Links a kernel that another host has built, and that was checked when it arrived: no failure is the
// candidate's.
absl::Status Link(const v1::BuildRequest& request, const Workload& workload, const Target& target,
                  v1::BuildResponse* response) {
  MYCC_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(request.built(), kMostPortableBytes));
  MYCC_ASSIGN_OR_RETURN(const Portable portable, ParsePortable(bytes, workload, target));
  response->set_code_digest(portable.code_digest);
  response->set_compiler(portable.compiler);
  response->set_library(request.built() + ".so");
  MYCC_ASSIGN_OR_RETURN(const BuildReport report,
                        LinkPortable(portable, kModule, workload, target, response->library()));
  Describe(report, response->mutable_resources());
  response->mutable_resources()->set_code_bytes(portable.image.cubin.size());
  return absl::OkStatus();
}

// The kernels that a GPU's runner measures with.
absl::StatusOr<v1::BuildResponse> BuildMeasuringKernels(const v1::BuildRequest& request,
                                                        const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const CudaImage image, CompileCuda(kMeasuringKernels, target));
  v1::BuildResponse response;
  response.set_library(absl::StrCat(request.directory(), "/measuring-kernels-", target.arch, ".cubin"));
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(response.library(), image.cubin));
  return response;
}

absl::StatusOr<v1::BuildResponse> Build(const v1::BuildRequest& request) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  if (request.workload().empty()) return BuildMeasuringKernels(request, target);
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(request.workload(), "workload"));
  if (!request.built().empty()) {
    v1::BuildResponse linked;
    const absl::Status status = Link(request, workload, target, &linked);
    if (!status.ok()) Fail(status, /*is_of_the_host=*/true, &linked);
    return linked;
  }
  const bool is_reference = request.trace().empty();
  absl::StatusOr<KernelSpec> kernel = absl::UnknownError("");
  if (is_reference) {
    kernel = CompileReference(workload, target);
  } else {
    MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(request.trace()));
    kernel = CompileKernel(workload, target, trace);
  }
  if (!kernel.ok()) return kernel.status();
  v1::BuildResponse response;
  const absl::StatusOr<std::string> digest = CodeDigestOf(*kernel, target);
  if (!digest.ok()) {
    Fail(digest.status(), IsOfTheHost(digest.status()), &response);
    return response;
  }
  response.set_code_digest(*digest);
  response.set_library(
      absl::StrCat(request.directory(), "/", response.code_digest(), request.portable() ? ".kernel" : ".so"));
  const absl::Status built = request.portable()
                                 ? BuildPortableOf(*std::move(kernel), target, &response)
                                 : BuildLibraryOf(*std::move(kernel), target, is_reference, &response);
  // The digest is known all the same.
  if (!built.ok()) Fail(built, IsOfTheHost(built), &response);
  return response;
}

}  // namespace

v1::BuildResponse HandleBuildRequest(const v1::BuildRequest& request) {
  absl::StatusOr<v1::BuildResponse> response = Build(request);
  if (response.ok()) return *std::move(response);
  v1::BuildResponse failure;
  Fail(response.status(), /*is_of_the_host=*/false, &failure);
  return failure;
}

}  // namespace mycc
