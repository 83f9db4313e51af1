#include "codegen/ir/loop_marks.h"

#include <array>
#include <cstddef>

namespace mycc {
namespace {

constexpr std::array<std::string_view, 6> kLoopKindNames = {"serial", "parallel", "vector",
                                                            "unroll", "block",    "thread"};

}  // namespace

std::string_view LoopKindName(LoopKind kind) { return kLoopKindNames[static_cast<size_t>(kind)]; }

bool ParseLoopKind(const std::string& name, LoopKind* kind) {
  for (size_t i = 0; i < kLoopKindNames.size(); ++i) {
    if (name != kLoopKindNames[i]) continue;
    *kind = static_cast<LoopKind>(i);
    return true;
  }
  return false;
}

}  // namespace mycc
