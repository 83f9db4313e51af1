#include "codegen/schedule/trace_names.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace mycc {
namespace {

struct Renamed {
  std::string_view first, current;
};

// Logs contain the first names: a row must never change, and a first name must not be given to another
// primitive.
constexpr Renamed kRenamed[] = {
    {"stream", "stream_k"},        {"join", "cluster_reduce"},      {"cluster", "multicast_cluster"},
    {"alternate", "pingpong"},     {"reside", "min_blocks_per_sm"}, {"elect", "lane_predicate"},
    {"unlike_signs", "flip_sign"}, {"stage", "stage_shared"},       {"phases", "split_stride_phases"},
    {"bypass", "nontemporal"},
};

using PrimitiveName = std::string_view Renamed::*;

std::string_view Converted(std::string_view name, PrimitiveName from, PrimitiveName to) {
  const Renamed* found = std::ranges::find(kRenamed, name, from);
  return found != std::end(kRenamed) ? found->*to : name;
}

// A step begins with a name, optional blanks and an opening parenthesis; other lines stay.
std::string WithNames(const std::string& trace, PrimitiveName from, PrimitiveName to) {
  std::vector<std::string> lines = absl::StrSplit(trace, '\n');
  for (std::string& line : lines) {
    const size_t begin = line.find_first_not_of(" \t"), end = line.find_first_of(" \t(#", begin);
    const size_t next = end == std::string::npos ? end : line.find_first_not_of(" \t", end);
    if (next == std::string::npos || line[next] != '(') continue;
    const std::string_view name = std::string_view(line).substr(begin, end - begin);
    const std::string_view renamed = Converted(name, from, to);
    if (renamed != name) line.replace(begin, end - begin, renamed);
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

std::string_view CurrentPrimitive(std::string_view name) {
  return Converted(name, &Renamed::first, &Renamed::current);
}

std::string CurrentTrace(const std::string& trace) {
  return WithNames(trace, &Renamed::first, &Renamed::current);
}
std::string StoredTrace(const std::string& trace) {
  return WithNames(trace, &Renamed::current, &Renamed::first);
}

}  // namespace mycc
