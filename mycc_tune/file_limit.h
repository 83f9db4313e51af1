// The open files that this process may have. Thread rule: before other threads.
#pragma once

namespace mycc {

// Raises the limit to the number of files that a server with thousands of connections needs, which is far
// more than a shell's 1024. The limit ends lower where the system permits less, and a higher one stays.
void RaiseFileLimit();

}  // namespace mycc
