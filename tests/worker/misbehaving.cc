#include "tests/worker/misbehaving.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/artifact/cuda_library.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/workload/parse.h"
#include "worker/builder.h"

namespace mycc {
namespace {

// The code of thread i of 64000, by the trace's word.
const std::map<std::string, std::string>& Bodies() {
  static const auto* const bodies = new std::map<std::string, std::string>{
      {"good", "y[i] = x[i] * 2.0f;"},
      {"slow", "for (int k = 0; k < 64; ++k) ((volatile float*)y)[i] = x[i] * 2.0f;"},
      {"wrong", "y[i] = x[i] * (i == 777 ? 3.0f : 2.0f);"},
      {"forgetful", "if (i != 31999) y[i] = x[i] * 2.0f;"},
      {"beside", "y[i] = x[i] * 2.0f; if (i == 0) y[-1] = 0.0f;"},
      {"input", "y[i] = x[i] * 2.0f; if (i == 5) x[5] = 7.0f;"},
      {"fault", "y[i] = x[i] * 2.0f; *(volatile float*)16 = 1.0f;"},
      {"hang", "while (*(volatile float*)x != 12345.0f) y[i] += 1.0f;"},
      {"finite", "y[i] = isfinite(x[i] * 2.0f) ? x[i] * 2.0f : 0.0f;"},
      {"flaky", "y[i] = x[i] * 2.0f; if (i == 0 && ++calls > 2) y[0] = 5.0f;"},
      {"restless",
       "y[i] = x[i] * 2.0f; if (i == 32000 && ++calls % 13 == 0) y[i] = "
       "__uint_as_float(__float_as_uint(y[i]) "
       "^ 1u);"},
      {"shy", ""},
      {"crash", ""},
      {"killed", ""},
      {"gone", ""}};
  return *bodies;
}

CudaProgram ProgramOf(const std::string& name, const std::string& body) {
  CudaProgram program;
  program.source = absl::StrCat(
      "__device__ int calls;\nextern \"C\" __global__ void __launch_bounds__(256) ", name,
      "(float* x, float* y) {\n  const int i = blockIdx.x * 256 + threadIdx.x;\n  ", body, "\n}\n");
  CudaStep step;
  step.kernel = name;
  step.grid = {250, 1, 1};
  step.threads = 256;
  step.pointers = {{0, 0}, {1, 0}};
  program.call = {step};
  return program;
}

absl::StatusOr<v1::BuildResponse> Build(const v1::BuildRequest& request, const std::string& body) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(request.workload(), "test"));
  LibrarySpec spec{"trial", target, {}};
  MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, CompileReference(workload, target));
  spec.kernels.push_back(std::move(kernel));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(spec));
  MYCC_ASSIGN_OR_RETURN(const SharedObject object,
                        LinkCudaPrograms(spec, entries, {ProgramOf(request.trace(), body)}));
  v1::BuildResponse response;
  response.set_code_digest(Sha256Hex(absl::StrCat(request.workload(), request.trace())));
  response.set_library(absl::StrCat(request.directory(), "/", response.code_digest(), ".so"));
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(response.library(), object.bytes, /*executable=*/true));
  return response;
}

// Ends the first build as somebody else's kill would.
void MeetBadLuck() {
  const char* const met = std::getenv(kUnluckyBuild);
  if (met == nullptr) return;
  const int made = open(met, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) kill(getpid(), SIGKILL);
}

}  // namespace

v1::BuildResponse BuildMisbehaving(const v1::BuildRequest& request) {
  if (request.trace().empty() && !request.workload().empty()) MeetBadLuck();
  const auto body = Bodies().find(request.trace());
  if (body == Bodies().end()) return HandleBuildRequest(request);
  absl::StatusOr<v1::BuildResponse> response = Build(request, body->second);
  if (response.ok()) return *std::move(response);
  v1::BuildResponse failure;
  failure.set_error(std::string(response.status().message()));
  return failure;
}

}  // namespace mycc
