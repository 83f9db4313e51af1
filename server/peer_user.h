// Asks the kernel which user's process is at the other end of a connection within this host. Thread rule:
// functions are re-entrant.
#pragma once

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace mycc {

// The user of the process that holds the other end of a connected socket: over a Unix socket, the one who
// connected it; over loopback, the owner of the socket with exactly this pair of addresses and ports.
// NotFound: nobody holds the other end any more. FailedPrecondition: the kernel does not tell, or the other
// end is not on this host.
absl::StatusOr<uid_t> UserOfPeer(int descriptor);

}  // namespace mycc
