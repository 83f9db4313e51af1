#include "laboratory/read_space.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "laboratory/recorded_file.h"
#include "laboratory/tuner_results.h"

namespace mycc {
namespace {

// "RTX_3090" of "pnpoly/RTX_3090.json.gz".
std::string Stem(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.substr(0, name.find('.'));
}

// The number that stands for a choice of the T1 file in the recorded space, whose numbers are sorted.
std::vector<int> SortedChoices(const T1Space& t1, const RecordedSpace& space) {
  std::vector<int> choices;
  for (size_t p = 0; p < t1.defaults.size(); ++p) {
    const std::string text = ValueText(t1.space.parameters()[p].values[t1.defaults[p]]);
    const std::vector<std::string>& values = space.parameters[p].values;
    choices.push_back(static_cast<int>(std::ranges::find(values, text) - values.begin()));
  }
  return choices;
}

}  // namespace

absl::StatusOr<T1Space> ReadT1File(const std::string& path) {
  bool is_cut = false;
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadRecordedFile(path, &is_cut));
  if (is_cut) return absl::InvalidArgumentError(absl::StrCat(path, ": breaks off; expected a whole file"));
  MYCC_ASSIGN_OR_RETURN(T1Space t1, ReadT1(text, path));
  if (t1.name.empty()) t1.name = Stem(path);
  return t1;
}

absl::StatusOr<RecordedSpace> ReadRecordedSpace(const std::string& path, const T1Space* t1,
                                                SpaceCounts* counts) {
  bool is_cut = false;
  MYCC_ASSIGN_OR_RETURN(std::string text, ReadRecordedFile(path, &is_cut));
  MYCC_ASSIGN_OR_RETURN(const ResultTable table, ReadTunerResults(std::move(text), path));
  SpaceCounts counted;
  MYCC_ASSIGN_OR_RETURN(RecordedSpace space,
                        MakeRecordedSpace(table, t1 == nullptr ? nullptr : &t1->space, path, &counted));
  const std::filesystem::path file(path);
  if (t1 != nullptr) {
    space.name = t1->name;
    space.default_choices = SortedChoices(*t1, space);
  }
  if (space.name.empty()) space.name = Stem(file.parent_path());
  if (space.name.empty()) space.name = Stem(file);
  if (space.device.empty()) space.device = Stem(file);
  if (counts != nullptr) *counts = counted;
  return space;
}

}  // namespace mycc
