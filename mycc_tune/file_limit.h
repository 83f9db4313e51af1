// The open files that this process may have. Thread rule: before other threads.
#pragma once

namespace mycc {

// Raises the limit to what a server of thousands of connections needs, or as far as the system permits. A
// shell begins with 1024. A limit that is higher already stays.
void RaiseFileLimit();

}  // namespace mycc
