#include "command/source_listing.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "command/colour.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr int kTabStop = 8;
constexpr int kMostColumns = 100;  // of a line that is shown whole
constexpr int kBeforeMark = 40;    // columns that are shown before the mark in a longer one

// A character as a terminal shows it.
struct Cell {
  std::string text;
  int width = 1;    // in columns
  size_t byte = 0;  // where it stands in its line
};

std::string LineOf(const std::string& text, int line) {
  size_t begin = 0;
  for (int i = 1; i < line && begin != std::string::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return "";
  std::string found = text.substr(begin, text.find('\n', begin) - begin);
  while (!found.empty() && found.back() == '\r') found.pop_back();
  return found;
}

// The bytes of the character that begins at `at`: 1 also where there is none.
size_t CharacterBytes(const std::string& line, size_t at) {
  const auto lead = static_cast<unsigned char>(line[at]);
  const size_t count = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return IsUtf8(line.substr(at, count)) ? count : 1;
}

// The columns of a character beyond ASCII: none for marks that combine, two for the scripts of East Asia and
// for pictures. After Unicode's East Asian Width, in ranges.
int WidthOf(const std::string& character) {
  uint32_t code = static_cast<unsigned char>(character[0]) & (0x7fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i)
    code = code << 6 | (static_cast<unsigned char>(character[i]) & 0x3f);
  const auto within = [code](uint32_t low, uint32_t high) { return low <= code && code <= high; };
  if (within(0x300, 0x36f) || within(0x200b, 0x200f) || within(0xfe00, 0xfe0f) || code == 0xfeff) return 0;
  const bool is_wide = within(0x1100, 0x115f) || within(0x2e80, 0xa4cf) || within(0xac00, 0xd7a3) ||
                       within(0xf900, 0xfaff) || within(0xfe30, 0xfe6f) || within(0xff00, 0xff60) ||
                       within(0xffe0, 0xffe6) || within(0x1f300, 0x1faff) || within(0x20000, 0x3fffd);
  return is_wide ? 2 : 1;
}

std::vector<Cell> CellsOf(const std::string& line) {
  std::vector<Cell> cells;
  int column = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t bytes = CharacterBytes(line, at);
    Cell cell{line.substr(at, bytes), 1, at};
    if (line[at] == '\t') {
      cell.width = kTabStop - column % kTabStop;
      cell.text = std::string(static_cast<size_t>(cell.width), ' ');
    } else if (const std::string shown = Printable(cell.text); shown != cell.text) {
      cell.width = static_cast<int>(shown.size());
      cell.text = shown;
    } else if (bytes > 1) {
      cell.width = WidthOf(cell.text);
    }
    column += cell.width;
    at += bytes;
    cells.push_back(std::move(cell));
  }
  return cells;
}

// The part of a line that is shown, and the columns before the mark and under it.
struct Excerpt {
  std::string text;
  int before = 0, marked = 0;
};

Excerpt ExcerptOf(const std::vector<Cell>& cells, size_t mark, size_t mark_end) {
  int width = 0, mark_column = 0;
  for (const Cell& cell : cells) {
    if (cell.byte < mark) mark_column += cell.width;
    width += cell.width;
  }
  const int from = width <= kMostColumns ? 0 : std::max(0, mark_column - kBeforeMark);
  const int to = width <= kMostColumns ? width : from + kMostColumns;
  Excerpt excerpt;
  if (from > 0) excerpt = {"...", 3, 0};
  int column = 0;
  for (const Cell& cell : cells) {
    const bool is_shown = from <= column && column + cell.width <= to;
    column += cell.width;
    if (!is_shown) continue;
    excerpt.text += cell.text;
    if (cell.byte < mark) excerpt.before += cell.width;
    if (cell.byte >= mark && cell.byte < mark_end) excerpt.marked += cell.width;
  }
  if (to < width) excerpt.text += "...";
  return excerpt;
}

std::string ListProblem(const std::string& file, const std::string& text, const Diagnostic& problem) {
  const Position at = problem.position;
  const size_t mark = static_cast<size_t>(at.column - 1);
  const Excerpt excerpt =
      ExcerptOf(CellsOf(LineOf(text, at.line)), mark, mark + static_cast<size_t>(problem.length));
  const std::string underline =
      absl::StrCat("^", std::string(static_cast<size_t>(std::max(excerpt.marked - 1, 0)), '~'));
  const std::string place = absl::StrCat(Printable(file), ":", at.line, ":", at.column, ":");
  const std::string margin = "      ";
  std::string listed = absl::StrCat(
      Painted(place, Tone::kPlace, Stream::kError), " ", Painted("error:", Tone::kError, Stream::kError), " ",
      Printable(problem.message), "\n", absl::StrFormat("%5d", at.line), " | ", excerpt.text, "\n", margin,
      "| ", std::string(static_cast<size_t>(excerpt.before), ' '),
      Painted(underline, Tone::kError, Stream::kError), "\n");
  if (!problem.hint.empty())
    absl::StrAppend(&listed, margin, "= ", Painted("hint:", Tone::kHint, Stream::kError), " ",
                    Printable(problem.hint), "\n");
  return listed;
}

}  // namespace

std::string ListProblems(const std::string& file, const std::string& text, const ParsedText& parsed) {
  std::string listed;
  for (const Diagnostic& problem : parsed.problems) listed += ListProblem(file, text, problem);
  return listed;
}

}  // namespace mycc
