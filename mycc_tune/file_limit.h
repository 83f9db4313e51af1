// The open files that this process may have. Thread rule: before other threads.
#pragma once

namespace mycc {

// Raises the limit, as far as the system lets a user, to what a server of thousands of connections needs: a
// shell begins with 1024. A limit that is higher already stays.
void RaiseFileLimit();

}  // namespace mycc
