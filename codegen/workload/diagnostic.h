// Problems of a text of the language: where they stand, what they are, and how it would be written. Thread
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
  int length = 1;       // of the words that the message is about, in bytes
  std::string message;  // "unknown name `k`; expected an axis of this stage (i), a literal or a function"
  std::string hint;     // how the language writes what was meant; "" when nobody knows
};

// "FILE:LINE:COLUMN: message (hint)".
std::string OneLine(const std::string& origin, const Diagnostic& diagnostic);

// The first problems of a text in the order of their places, and the number of all. A place has one problem:
// what is found there later follows from it.
class Diagnostics {
 public:
  static constexpr size_t kMostKept = 20;

  void Add(Diagnostic diagnostic);
  // Whether a problem at this place would be kept: if not, its words need not be found.
  bool Keeps(Position position) const;

  const std::vector<Diagnostic>& kept() const { return kept_; }
  size_t count() const { return count_; }

 private:
  std::vector<Diagnostic> kept_;
  size_t count_ = 0;
};

}  // namespace mycc
