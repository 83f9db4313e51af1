#include "command/colour.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

struct Colours {
  bool output = false, error = false;
};

Colours& Chosen() {
  static Colours colours;
  return colours;
}

bool KnowsColours(int file) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && no_color[0] != '\0';
  const std::string terminal = term == nullptr ? "" : term;
  return !refused && !terminal.empty() && terminal != "dumb" && isatty(file) == 1;
}

// The codes of terminals: ECMA-48, select graphic rendition.
const char* CodeOf(Tone tone) {
  switch (tone) {
    case Tone::kError: return "1;31";    // bold red
    case Tone::kWarning: return "1;35";  // bold magenta
    case Tone::kHint: return "36";       // cyan
    case Tone::kHit: return "32";        // green
    case Tone::kMiss: return "33";       // yellow
    case Tone::kPlace: return "1";       // bold
  }
  return "0";
}

}  // namespace

void ChooseColour(const std::string& choice) {
  const bool always = choice == "always", never = choice == "never";
  Chosen().output = always || (!never && KnowsColours(STDOUT_FILENO));
  Chosen().error = always || (!never && KnowsColours(STDERR_FILENO));
}

std::string Painted(const std::string& text, Tone tone, Stream stream) {
  const bool has_colours = stream == Stream::kOutput ? Chosen().output : Chosen().error;
  return has_colours && !text.empty() ? absl::StrCat("\x1b[", CodeOf(tone), "m", text, "\x1b[0m") : text;
}

std::string WarningLine(const std::string& program, const std::string& warning) {
  return absl::StrCat(program, ": ", Painted("warning:", Tone::kWarning, Stream::kError), " ", warning, "\n");
}

}  // namespace mycc
