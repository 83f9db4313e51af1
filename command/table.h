// Formats rows of text as a table with aligned columns. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mycc {

// The first row is the header, underlined. Columns are as wide as they must be; those named in `right` are
// aligned to the right, and the last one is not padded.
// `paint` may colour a cell of a row that is no header.
using PaintCell = std::function<std::string(size_t column, const std::string& cell)>;
std::string FormatTable(const std::vector<std::vector<std::string>>& rows, const std::vector<int>& right,
                        const PaintCell& paint = nullptr);

}  // namespace mycc
