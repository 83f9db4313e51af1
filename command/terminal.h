// The terminal that a command writes to. Thread rule: re-entrant.
#pragma once

namespace mycc {

// In characters; 100 where `fd` is no terminal, or one that does not say it.
int TerminalWidth(int fd);

}  // namespace mycc
