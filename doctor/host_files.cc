#include "doctor/host_files.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace mycc {
namespace {

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// "\040" and the like, by which /proc writes spaces in paths.
std::string Unescaped(const std::string& text) {
  const auto is_octal = [&text](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && is_octal(i + 1) && is_octal(i + 2) && is_octal(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool LiesBelow(const std::string& path, const std::string& place) {
  return place == "/" || path == place || absl::StartsWith(path, place + "/");
}

}  // namespace

std::optional<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<int64_t> NumberIn(const std::string& path) {
  const std::optional<std::string> line = FirstLine(path);
  int64_t number = 0;
  if (!line || !absl::SimpleAtoi(*line, &number)) return std::nullopt;
  return number;
}

std::vector<int> CpusOf(const std::string& list) {
  std::vector<int> cpus;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> range =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(range.first, &first)) continue;
    if (!absl::SimpleAtoi(range.second, &last)) last = first;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<std::string> ControlGroups(const std::string& root, const std::string& controller) {
  std::string tree, group;
  for (const std::string& line : LinesOf(absl::StrCat(root, "/proc/self/cgroup"))) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::ranges::find(controllers, controller) != controllers.end()) {
      tree = absl::StrCat(root, "/sys/fs/cgroup/", controller);
      group = parts[2];
      break;
    }
    if (parts[0] == "0" && parts[1].empty()) {
      tree = absl::StrCat(root, "/sys/fs/cgroup");
      group = parts[2];
    }
  }
  std::vector<std::string> folders;
  if (tree.empty()) return folders;
  while (group.size() > 1) {
    folders.push_back(tree + group);
    group.resize(group.rfind('/'));
  }
  folders.push_back(tree);
  return folders;
}

bool Mount::Has(const std::string& option) const {
  return std::ranges::find(options, option) != options.end();
}

// A line of mountinfo: "36 35 98:0 /root /place rw,noatime shared:1 - ext3 /dev/root rw,errors=continue".
std::optional<Mount> MountOf(const std::string& root, const std::string& path) {
  std::optional<Mount> best;
  for (const std::string& line : LinesOf(absl::StrCat(root, "/proc/self/mountinfo"))) {
    const std::pair<std::string, std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<std::string> first = absl::StrSplit(halves.first, ' ');
    const std::vector<std::string> second = absl::StrSplit(halves.second, ' ');
    if (first.size() < 6 || second.size() < 3) continue;
    Mount mount{.place = Unescaped(first[4]),
                .type = second[0],
                .source = Unescaped(second[1]),
                .options = absl::StrSplit(first[5], ',')};
    // A later mount on a place hides the earlier one.
    if (LiesBelow(path, mount.place) && (!best || mount.place.size() >= best->place.size()))
      best = std::move(mount);
  }
  return best;
}

std::optional<int64_t> MemoryBytes(const std::string& root, const std::string& key) {
  for (const std::string& line : LinesOf(absl::StrCat(root, "/proc/meminfo"))) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, absl::StrCat(key, ":")) || !absl::ConsumeSuffix(&rest, " kB")) continue;
    int64_t kib = 0;
    if (absl::SimpleAtoi(rest, &kib)) return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace mycc
