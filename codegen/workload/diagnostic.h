// Problems of a text in the tensor language: position, message, and a hint at the right spelling. Thread
// rule: Diagnostics has one owner; the rest are values.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

namespace mycc {

struct Position {
  int line = 1;
  int column = 1;  // in bytes, from 1

  auto operator<=>(const Position&) const = default;
};

struct Diagnostic {
  Position position;
  int length = 1;       // of the text that the message is about, in bytes
  std::string message;  // "unknown name `k`; expected an axis of this stage (i), a literal or a function"
  std::string hint;     // how the language writes what was meant; "" when that is unknown
};

// "FILE:LINE:COLUMN: message (hint)".
std::string OneLine(const std::string& origin, const Diagnostic& diagnostic);

// The first kMostKept problems of a text, ordered by position, and the number of all problems. A position has
// one problem: later ones follow from it.
class Diagnostics {
 public:
  static constexpr size_t kMostKept = 20;

  void Add(Diagnostic diagnostic);
  // Whether a problem at this position would be kept. If not, its message need not be made.
  bool Keeps(Position position) const;

  const std::vector<Diagnostic>& kept() const { return kept_; }
  size_t count() const { return count_; }

 private:
  std::vector<Diagnostic> kept_;
  size_t count_ = 0;
};

}  // namespace mycc
