// Colour on a terminal: the one place that decides whether there is any. Thread rule: ChooseColour is called
// once, before there are threads; the rest is pure.
#pragma once

#include <cstdint>
#include <string>

namespace mycc {

enum class Stream : uint8_t { kOutput, kError };
enum class Tone : uint8_t { kError, kWarning, kHint, kHit, kMiss, kPlace };

// "always", "never", or "auto": where the stream is a terminal that knows colours (TERM is set and not
// `dumb`), and NO_COLOR is not set. Until it is called there is none.
void ChooseColour(const std::string& choice);

// The text in the tone's colour where `stream` has colours, the text itself elsewhere.
std::string Painted(const std::string& text, Tone tone, Stream stream);

// "mycc: warning: ...", a line for the standard error.
std::string WarningLine(const std::string& program, const std::string& warning);

}  // namespace mycc
