// Collects the alternatives of a program's kernels place by place, and keeps those of the most work.
// Thread rule: thread-compatible.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/program/program.h"

namespace mycc {

class AlternativeList {
 public:
  // One place where `parts` may be launched in place of one kernel.
  void Add(const std::string& name, const Workload& instead_of, std::vector<Workload> parts);

  // Takes the alternatives to measure, of the most work first. `kernels` are those of the default cut, by
  // canonical text.
  std::vector<Alternative> Take(const std::unordered_map<std::string, size_t>& kernels);

 private:
  struct Entry {
    Alternative alternative;
    std::vector<std::string> texts;  // canonical, of the parts
  };
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> numbers_;  // by name
};

}  // namespace mycc
