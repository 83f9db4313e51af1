// Suggests the nearest known name for a mistyped one. Pure.
#pragma once

#include <string>
#include <vector>

namespace mycc {

// " (did you mean haswell?)" with the nearest of the names, or "" when none is near: more than a third of its
// letters would have to change.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& names);

}  // namespace mycc
