#include "codegen/ir/loop_marks.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace mycc {
namespace {

constexpr std::array<std::string_view, 6> kLoopKindNames = {"serial", "parallel", "vector",
                                                            "unroll", "block",    "thread"};

}  // namespace

std::string_view LoopKindName(LoopKind kind) { return kLoopKindNames[static_cast<size_t>(kind)]; }

bool ParseLoopKind(const std::string& name, LoopKind* kind) {
  const auto found = std::ranges::find(kLoopKindNames, name);
  if (found == kLoopKindNames.end()) return false;
  *kind = static_cast<LoopKind>(found - kLoopKindNames.begin());
  return true;
}

}  // namespace mycc
