// Any text is refused with its file, or is a recorded space: sorted, without repetitions, and every choice of
// it a value.
#include <string>

#include "base/check.h"
#include "laboratory/t1.h"
#include "laboratory/tuner_results.h"

namespace mycc {
namespace {

void Check(const RecordedSpace& space) {
  const std::vector<int>* before = nullptr;
  for (const RecordedConfiguration& configuration : space.configurations) {
    MYCC_CHECK(configuration.choices.size() == space.parameters.size());
    for (size_t p = 0; p < space.parameters.size(); ++p) {
      const int choice = configuration.choices[p];
      MYCC_CHECK(choice >= 0 && choice < static_cast<int>(space.parameters[p].values.size())) << choice;
    }
    MYCC_CHECK(configuration.run_seconds.empty() == !configuration.failure.empty()) << configuration.failure;
    MYCC_CHECK(before == nullptr || *before < configuration.choices);
    before = &configuration.choices;
  }
}

void CheckNamesFile(const absl::Status& status) {
  MYCC_CHECK(absl::IsInvalidArgument(status) && status.message().substr(0, 6) == "fuzz: ") << status;
}

}  // namespace
}  // namespace mycc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto t1 = mycc::ReadT1(text, "fuzz"); !t1.ok()) mycc::CheckNamesFile(t1.status());
  const auto table = mycc::ReadTunerResults(text, "fuzz");
  if (!table.ok()) {
    mycc::CheckNamesFile(table.status());
    return 0;
  }
  mycc::SpaceCounts counts;
  const auto space = mycc::MakeRecordedSpace(*table, nullptr, "fuzz", &counts);
  if (space.ok()) {
    mycc::Check(*space);
  } else {
    mycc::CheckNamesFile(space.status());
  }
  return 0;
}
