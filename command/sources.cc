#include "command/sources.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/plural.h"
#include "base/status.h"
#include "codegen/runtime/cuda_target.h"
#include "codegen/workload/parse.h"
#include "command/misuse.h"
#include "command/source_listing.h"

namespace mycc {

absl::StatusOr<std::vector<Workload>> ReadWorkloads(const std::string& file) {
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadText(file, kMostSourceBytes));
  ParsedText parsed = ParseText(text);
  if (parsed.problems.empty()) return std::move(parsed.workloads);
  if (text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", file, "` is no text; expected workloads (.te), or a model under a name that ends in .onnx"));
  }
  const size_t shown = parsed.problems.size(), count = shown + parsed.left_out;
  const std::string summary =
      absl::StrCat(file, ": ", HowMany(count, "error"),
                   parsed.left_out == 0 ? "" : absl::StrCat("; the first ", shown, " are shown"));
  return WithListing(absl::InvalidArgumentError(summary), ListProblems(file, text, parsed));
}

absl::StatusOr<Target> ReadTarget(const std::string& text) {
  if (text == "cuda") return DetectCudaTarget(0);
  if (absl::StartsWith(text, "cuda:")) {
    int device = 0;
    if (absl::SimpleAtoi(text.substr(5), &device) && device >= 0) return DetectCudaTarget(device);
    return Misuse(absl::StrCat("--target: `", text, "`; expected cuda:0 or another number of a GPU"));
  }
  absl::StatusOr<Target> target = ParseTarget(text);
  if (!target.ok()) return Misuse(absl::StrCat("--target: ", std::string(target.status().message())));
  return target;
}

}  // namespace mycc
