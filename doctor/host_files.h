// Reads what the kernel tells in files below a root, which is empty for the host itself. Thread rule:
// re-entrant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mycc {

// The first line of a file, without its end; none where there is no such file.
std::optional<std::string> FirstLine(const std::string& path);
std::optional<int64_t> NumberIn(const std::string& path);

// The CPUs of a list such as "0-3,8".
std::vector<int> CpusOf(const std::string& list);

// The folders of this process' control group and of those above it, from its own to the top, that limit
// `controller` ("cpu", "memory"). Version 2 has one tree, version 1 one for each controller.
std::vector<std::string> ControlGroups(const std::string& root, const std::string& controller);

struct Mount {
  std::string place, type, source;
  std::vector<std::string> options;

  bool Has(const std::string& option) const;
};
// The mount that a path without links lies on; none where the kernel tells of none.
std::optional<Mount> MountOf(const std::string& root, const std::string& path);

// The value of "KEY:   VALUE kB" in /proc/meminfo, in bytes.
std::optional<int64_t> MemoryBytes(const std::string& root, const std::string& key);

}  // namespace mycc
