#include "codegen/artifact/link.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/runtime/artifact/embed.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace mycc {
namespace {

std::string VersionScript(const std::vector<std::string>& exports) {
  std::string script = "{ global:";
  for (const std::string& symbol : exports) absl::StrAppend(&script, " ", symbol, ";");
  return absl::StrCat(script, " local: *; };\n");
}

// lld keeps its state in global variables, so one link runs at a time.
absl::Status RunLld(const std::vector<std::string>& args) {
  static Mutex mutex;
  MutexLock lock(&mutex);
  std::vector<const char*> argv;
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  const lld::Result result = lld::lldMain(argv, stream, stream, drivers);
  llvm::CrashRecoveryContext::Disable();  // lldMain does not remove its signal handlers
  if (result.retCode == 0) return absl::OkStatus();
  const std::string error = absl::StrCat("lld: ", messages);
  for (const int lack : {ENOSPC, EDQUOT, ENOMEM}) {
    if (absl::StrContains(messages, strerror(lack))) return absl::ResourceExhaustedError(error);
  }
  return absl::InternalError(error);
}

}  // namespace

absl::StatusOr<std::string> LinkSharedObject(const std::vector<std::string_view>& objects,
                                             const std::vector<std::string>& exports,
                                             const std::string& soname,
                                             const std::vector<std::string>& files) {
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const std::string output = folder.path() + "/out.so", script = folder.path() + "/exports";
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(script, VersionScript(exports)));
  // One thread: links are small, and this process may be one of many on the machine.
  std::vector<std::string> args = {"ld.lld",
                                   "-shared",
                                   "-z",
                                   "defs",
                                   "-z",
                                   "noexecstack",
                                   "--gc-sections",
                                   "--as-needed",
                                   "--hash-style=gnu",
                                   "--build-id=none",
                                   "--eh-frame-hdr",
                                   "--threads=1",
                                   "--wrap=GOMP_parallel",
                                   "-soname",
                                   soname,
                                   "--version-script",
                                   script,
                                   "-o",
                                   output};
  std::vector<std::string_view> inputs = objects;
  for (std::string_view stub : ArtifactStubs()) inputs.push_back(stub);
  for (std::string_view bytes : inputs) {
    args.push_back(absl::StrCat(folder.path(), "/", args.size()));
    MYCC_RETURN_IF_ERROR(WriteFileAtomically(args.back(), bytes));
  }
  args.insert(args.end(), files.begin(), files.end());
  MYCC_RETURN_IF_ERROR(RunLld(args));
  return ReadFile(output);
}

}  // namespace mycc
