#include "command/terminal.h"

#include <sys/ioctl.h>

namespace mycc {

int TerminalWidth(int fd) {
  constexpr int kNoTerminalWidth = 100;
  winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kNoTerminalWidth;
}

}  // namespace mycc
