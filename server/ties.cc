#include "server/ties.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "proto/precision.h"

namespace mycc {
namespace {

const v1::Timing& TimeOf(const v1::Record& record) { return record.result().timing(); }

// The interval's width as a power of two: it is an estimate itself, and small differences are chance. A time
// without an interval is the least steady.
int Unsteadiness(const v1::Timing& timing) {
  const double width = RelativeWidth(timing);
  return width > 0 && std::isfinite(width) ? std::ilogb(width) : INT_MAX;
}

auto Preference(const v1::Record& record) {
  const v1::CodeResources& resources = record.result().resources();
  return std::make_tuple(resources.spill_bytes(), resources.shared_bytes(), resources.registers_per_thread(),
                         resources.code_bytes(), Unsteadiness(TimeOf(record)),
                         std::string_view(record.trace()));
}

}  // namespace

std::vector<size_t> TiesForBest(const std::vector<const v1::Record*>& records) {
  MYCC_CHECK(!records.empty()) << "no record passed the round";
  const auto fastest = *std::ranges::min_element(records, [](const v1::Record* a, const v1::Record* b) {
    return TimeOf(*a).seconds() < TimeOf(*b).seconds();
  });
  std::vector<size_t> ties;
  for (size_t i = 0; i < records.size(); ++i) {
    if (TiesWith(TimeOf(*records[i]), TimeOf(*fastest))) ties.push_back(i);
  }
  std::ranges::sort(ties,
                    [&](size_t a, size_t b) { return Preference(*records[a]) < Preference(*records[b]); });
  return ties;
}

}  // namespace mycc
