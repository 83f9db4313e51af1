#include "mycc/input_files.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "command/misuse.h"
#include "command/npy.h"
#include "command/npy_texts.h"

namespace mycc {
namespace {

absl::Status LoadInput(const std::string& path, const ArtifactArg& arg, HostTensor* tensor) {
  const std::vector<std::string> descrs =
      tensor->is_text() ? std::vector<std::string>{"<U"} : NpyDescrs(tensor->dtype());
  const NpyJudge judge = [&](const NpyArray& array) {
    const bool is_type =
        tensor->is_text() ? IsNpyText(array.descr) : std::ranges::find(descrs, array.descr) != descrs.end();
    if (is_type && array.shape == tensor->shape()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path, "` holds ", array.descr, " [", absl::StrJoin(array.shape, ","), "]; argument `", arg.name,
        "` expects ", descrs[0], " (", arg.dtype, ") [", absl::StrJoin(tensor->shape(), ","), "]"));
  };
  MYCC_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(path, judge));
  if (tensor->is_text()) {
    MYCC_ASSIGN_OR_RETURN(std::vector<std::string> texts, TextsOfNpy(array, path));
    tensor->SetTexts(std::move(texts));
    return absl::OkStatus();
  }
  std::memcpy(tensor->data(), array.bytes.data(), array.bytes.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InputFile> ParseInput(const std::string& option, const std::string& input,
                                     const std::vector<std::string>& names, const std::string& function) {
  const size_t equals = input.find('=');
  if (equals == std::string::npos) {
    if (names.size() == 1 && absl::EndsWith(input, ".npy")) return InputFile{0, input};
    return Misuse(absl::StrCat(option, ": `", input, "`; expected NAME=FILE.npy"));
  }
  const std::string name = input.substr(0, equals);
  const size_t index = std::ranges::find(names, name) - names.begin();
  if (index < names.size()) return InputFile{static_cast<int>(index), input.substr(equals + 1)};
  return Misuse(absl::StrCat(option, ": `", function, "` has no input `", name, "`; expected ",
                             names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::Status LoadInputs(const std::string& option, const std::vector<std::string>& inputs,
                        Arguments* arguments) {
  std::vector<std::string> names;
  std::vector<int> numbers;  // of these inputs among the arguments
  for (int i = 0; i < arguments->size(); ++i) {
    if (arguments->arg(i).kind == "output") continue;
    names.push_back(arguments->arg(i).name);
    numbers.push_back(i);
  }
  std::vector<bool> is_given(names.size());
  for (const std::string& input : inputs) {
    MYCC_ASSIGN_OR_RETURN(const InputFile file, ParseInput(option, input, names, arguments->function().name));
    if (is_given[file.index])
      return Misuse(absl::StrCat(option, ": `", names[file.index], "` is given twice"));
    is_given[file.index] = true;
    const int number = numbers[file.index];
    MYCC_RETURN_IF_ERROR(LoadInput(file.path, arguments->arg(number), &arguments->tensor(number)));
  }
  return absl::OkStatus();
}

}  // namespace mycc
