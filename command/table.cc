#include "command/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

std::string FormatRow(const std::vector<std::string>& row, const std::vector<size_t>& widths,
                      const std::vector<int>& right, const PaintCell& paint = nullptr) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string padding(widths[i] - std::min(widths[i], row[i].size()), ' ');
    const bool to_right = std::ranges::find(right, static_cast<int>(i)) != right.end();
    const std::string plain = Printable(row[i]);
    const std::string cell = paint != nullptr ? paint(i, plain) : plain;
    absl::StrAppend(&line, i > 0 ? "  " : "", to_right ? padding + cell : cell + padding);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string FormatTable(const std::vector<std::vector<std::string>>& rows, const std::vector<int>& right,
                        const PaintCell& paint) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> rule;
  for (size_t i = 0; i < widths.size(); ++i)
    rule.push_back(std::string(i + 1 < widths.size() ? widths[i] : rows[0][i].size(), '-'));
  std::string text = FormatRow(rows[0], widths, right) + FormatRow(rule, widths, right);
  for (size_t i = 1; i < rows.size(); ++i) text += FormatRow(rows[i], widths, right, paint);
  return text;
}

}  // namespace mycc
