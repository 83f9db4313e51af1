// Makes bytes valid UTF-8 and printable. Protobuf strings, JSON and terminals need that; the output of a
// compiler or a kernel may be neither.
#pragma once

#include <string>

namespace mycc {

// Shortest forms only, no surrogates, nothing above U+10FFFF. A zero byte is text.
bool IsUtf8(const std::string& bytes);

// The same text with each byte that is part of no character replaced by U+FFFD.
std::string ToUtf8(const std::string& bytes);

// A text that others wrote, fit for a terminal: the same, but a control character that is no newline or tab
// is shown as "\\x1b", and a byte of no character likewise.
std::string Printable(const std::string& bytes);

}  // namespace mycc
