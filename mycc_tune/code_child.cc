#include "mycc_tune/code_child.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/driver/compile.h"
#include "codegen/workload/parse.h"
#include "process/fork_server_main.h"
#include "process/limits.h"
#include "proto/measure.pb.h"

namespace mycc {
namespace {

constexpr char kCodeCommand[] = "internal-code";
constexpr double kWallSeconds = 20;
constexpr int64_t kAddressSpaceBytes = int64_t{4} << 30;
constexpr int64_t kFileBytes = 1 << 20;

absl::StatusOr<std::string> DigestNow(const v1::BuildRequest& request, bool* is_unknown) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(request.workload(), "workload"));
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(request.trace()));
  MYCC_ASSIGN_OR_RETURN(const KernelSpec kernel, CompileKernel(workload, target, trace));
  absl::StatusOr<std::string> digest = CodeDigestOf(kernel, target);
  *is_unknown = absl::IsNotFound(digest.status());  // the compiler is a library that this host lacks
  return digest;
}

// In a process of its own.
std::string AnswerCode(const std::string& payload) {
  v1::BuildRequest request;
  v1::BuildResponse response;
  bool is_unknown = false;
  const absl::StatusOr<std::string> digest =
      request.ParseFromString(payload) ? DigestNow(request, &is_unknown) : absl::DataLossError("no request");
  if (digest.ok()) {
    response.set_code_digest(*digest);
  } else {
    response.set_error(std::string(digest.status().message()));
    response.set_unfit(is_unknown);
  }
  return response.SerializeAsString();
}

}  // namespace

CodeProcess::CodeProcess() : server_(kCodeCommand) {}

CodeNow CodeProcess::CodeOf(const v1::Record& record) {
  v1::BuildRequest build;
  build.set_workload(record.workload());
  build.set_target(record.target());
  build.set_trace(record.trace());
  v1::ForkRequest request;
  request.set_payload(build.SerializeAsString());
  request.set_wall_seconds(kWallSeconds);
  request.set_address_space_bytes(kAddressSpaceBytes);
  request.set_file_bytes(kFileBytes);
  const absl::StatusOr<v1::ForkReply> reply = server_.Call(request);
  if (!reply.ok()) return {CodeNow::Kind::kUnknown, std::string(reply.status().message())};
  if (reply->unmade()) return {CodeNow::Kind::kUnknown, "this host lacks memory for a process"};
  v1::BuildResponse response;
  if (reply->answered() && response.ParseFromString(reply->payload())) {
    if (response.error().empty()) return {CodeNow::Kind::kDigest, response.code_digest()};
    return {response.unfit() ? CodeNow::Kind::kUnknown : CodeNow::Kind::kRefused, response.error()};
  }
  if (reply->timed_out())
    return {CodeNow::Kind::kRefused, absl::StrCat("compiling takes more than ", kWallSeconds, " s")};
  if (reply->out_of_memory()) return {CodeNow::Kind::kRefused, "compiling takes too much memory"};
  return {CodeNow::Kind::kRefused, reply->signal() != 0
                                       ? absl::StrCat("the compiler ends by signal ", reply->signal())
                                       : absl::StrCat("the compiler ends with ", reply->exit_code())};
}

std::optional<int> RunCodeChild(int argc, char** argv) {
  if (argc != 3 || std::string(argv[1]) != kCodeCommand) return std::nullopt;
  if (!DieWithParent(std::atoi(argv[2]))) return 1;
  return ForkServerMain(AnswerCode);
}

}  // namespace mycc
