// A hint for a mistyped name. Pure.
#pragma once

#include <string>
#include <vector>

namespace mycc {

// The nearest of the names, or "" when none is near: more than a third of its letters would have to change.
std::string NearestName(const std::string& word, const std::vector<std::string>& names);

// The same as " (did you mean haswell?)", or "".
std::string DidYouMean(const std::string& word, const std::vector<std::string>& names);

}  // namespace mycc
