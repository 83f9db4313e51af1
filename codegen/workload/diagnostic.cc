#include "codegen/workload/diagnostic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mycc {

std::string OneLine(const std::string& origin, const Diagnostic& diagnostic) {
  return absl::StrCat(origin, ":", diagnostic.position.line, ":", diagnostic.position.column, ": ",
                      diagnostic.message, diagnostic.hint.empty() ? "" : " (", diagnostic.hint,
                      diagnostic.hint.empty() ? "" : ")");
}

void Diagnostics::Add(Diagnostic diagnostic) {
  const auto at = std::ranges::lower_bound(kept_, diagnostic.position, {}, &Diagnostic::position);
  if (at != kept_.end() && at->position == diagnostic.position) return;
  ++count_;
  if (at == kept_.end() && kept_.size() == kMostKept) return;
  kept_.insert(at, std::move(diagnostic));
  if (kept_.size() > kMostKept) kept_.pop_back();
}

bool Diagnostics::Keeps(Position position) const {
  return kept_.size() < kMostKept || position < kept_.back().position;
}

}  // namespace mycc
