#include "proto/device_constants.h"

#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mycc {
namespace {

constexpr DeviceConstant kConstantRows[] = {
    {kThreadsConstant, "", 1, 65536, "threads of the device's target, which `all_threads` means"},
    {kClockConstant, "1/s", 1e8, 2e10, "clock of one thread"},
    {kPeakOfThread, "flop/s", 1e8, 1e13, "f32 multiply-adds, each two, in the widest vectors"},
    {kPeakOfAll, "flop/s", 1e8, 1e17, "the same of all threads at once; of a GPU without its tensor cores"},
    {kFmaLatency, "s", 1e-11, 1e-6, "from a multiply-add to the next that needs it"},
    {kL1OfThread, "bytes/s", 1e8, 1e14, "reading what lies in the first cache"},
    {kL2OfThread, "bytes/s", 1e8, 1e14, "reading what lies in the second cache"},
    {kL2OfAll, "bytes/s", 1e8, 1e17, "the same of all threads at once"},
    {kL3OfThread, "bytes/s", 1e8, 1e14, "reading what lies in the third cache"},
    {kL3OfAll, "bytes/s", 1e8, 1e17, "the same of all threads at once"},
    {kMemoryOfThread, "bytes/s", 1e7, 1e14, "reading memory in order"},
    {kMemoryOfAll, "bytes/s", 1e7, 1e17, "the same of all threads at once"},
    {kMemoryLatency, "s", 1e-9, 1e-4, "one load from memory that nothing foretells"},
    {kLaunchTime, "s", 1e-9, 1e-2, "to start and end work of all threads; of a GPU, one more kernel"},
};

constexpr int kMostValues = 64;
constexpr size_t kMostRefusals = 8, kMostNameBytes = 80;

const DeviceConstant* FindRow(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kConstantRows), std::end(kConstantRows),
                                         [name](const DeviceConstant& row) { return row.name == name; });
  return found == std::end(kConstantRows) ? nullptr : found;
}

std::string Shown(const std::string& name) { return absl::CHexEscape(name.substr(0, kMostNameBytes)); }

}  // namespace

absl::Span<const DeviceConstant> DeviceConstantRows() { return kConstantRows; }

double ConstantOf(const v1::DeviceConstants& constants, std::string_view name) {
  const auto found = constants.values().find(std::string(name));
  return found == constants.values().end() ? 0 : found->second;
}

v1::DeviceConstants SoundConstants(const v1::DeviceConstants& told, std::vector<std::string>* refused) {
  v1::DeviceConstants sound;
  sound.set_version(told.version());
  if (told.version() != kConstantsVersion) {
    refused->push_back(
        absl::StrCat("constants of version ", told.version(), "; expected version ", kConstantsVersion));
    return sound;
  }
  if (told.values_size() > kMostValues) {
    refused->push_back(absl::StrCat(told.values_size(), " constants; expected at most ", kMostValues));
    return sound;
  }
  // In an order that does not depend on the map's.
  const std::map<std::string, double> values(told.values().begin(), told.values().end());
  std::vector<std::string> lines;
  for (const auto& [name, value] : values) {
    const DeviceConstant* const row = FindRow(name);
    if (row == nullptr) {
      lines.push_back(absl::StrCat("an unknown constant \"", Shown(name), "\""));
    } else if (!(value >= row->least && value <= row->most)) {
      lines.push_back(
          absl::StrFormat("the constant %s is %g; expected %g to %g", name, value, row->least, row->most));
    } else {
      (*sound.mutable_values())[name] = value;
    }
  }
  const size_t shown = std::min(lines.size(), kMostRefusals);
  refused->insert(refused->end(), lines.begin(), lines.begin() + static_cast<int64_t>(shown));
  if (shown < lines.size()) refused->push_back(absl::StrCat(lines.size() - shown, " more like these"));
  return sound;
}

}  // namespace mycc
