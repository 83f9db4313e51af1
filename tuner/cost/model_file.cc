#include "tuner/cost/model_file.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mycc {
namespace {

constexpr char kFormat[] = "mycc-model", kVersion[] = "1";

// The file's kind is printed, and kept in logs.
bool IsName(const std::string& kind) {
  constexpr size_t kMostBytes = 64;
  return !kind.empty() && kind.size() <= kMostBytes &&
         std::ranges::all_of(kind, [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
}

std::string DeviceName(TargetKind device) { return device == TargetKind::kCpu ? "cpu" : "cuda"; }

}  // namespace

std::string PrintModelFile(const ModelFile& file) {
  return absl::StrCat(kFormat, " ", kVersion, " ", DeviceName(file.device), " ", file.kind, "\n", file.bytes);
}

absl::StatusOr<ModelFile> ParseModelFile(const std::string& contents) {
  const auto not_one = [] {
    return absl::InvalidArgumentError(
        "this is no cost model; expected a file of `mycc-tune log model export`");
  };
  const size_t end = contents.find('\n');
  if (end == std::string::npos) return not_one();
  const std::vector<std::string> words = absl::StrSplit(contents.substr(0, end), ' ');
  if (words[0] != kFormat || words.size() < 2) return not_one();
  if (words[1] != kVersion)
    return absl::InvalidArgumentError(
        absl::StrCat("a cost model of format ", words[1], "; expected ", kVersion));
  if (words.size() != 4 || !IsName(words[3])) return not_one();
  ModelFile file{TargetKind::kCpu, words[3], contents.substr(end + 1)};
  if (words[2] == DeviceName(TargetKind::kCuda)) {
    file.device = TargetKind::kCuda;
  } else if (words[2] != DeviceName(TargetKind::kCpu)) {
    return not_one();
  }
  return file;
}

}  // namespace mycc
