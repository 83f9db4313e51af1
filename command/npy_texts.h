// Arrays of texts in NumPy's .npy files: of type "<U7", which has up to 7 characters in UTF-32 in each
// element. Texts here are in UTF-8. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "command/npy.h"

namespace mycc {

// Whether a name of a type is that of texts.
bool IsNpyText(const std::string& descr);

// The elements. The errors name the file: one has a NUL inside, or a number that is no character.
// REQUIRES: IsNpyText(array.descr).
absl::StatusOr<std::vector<std::string>> TextsOfNpy(const NpyArray& array, const std::string& path);

// Bytes that are not UTF-8 become U+FFFD.
NpyArray NpyOfTexts(const std::vector<std::string>& texts, std::vector<int64_t> shape);

}  // namespace mycc
