// Says whether the tests of this build can judge what runs behind gRPC.
#pragma once

#include "absl/base/config.h"

namespace mycc {

// ThreadSanitizer must see each lock that orders two accesses. Debian's gRPC and Abseil are built without it,
// so it reports hundreds of accesses in gRPC's own headers, and a suppression wide enough for them would hide
// ours. So under it a worker calls the server's loop directly: the handlers behind gRPC only pass messages on
// to that loop, which is what threads share.
#ifdef ABSL_HAVE_THREAD_SANITIZER
inline constexpr bool kGrpcCanBeJudged = false;
#else
inline constexpr bool kGrpcCanBeJudged = true;
#endif

}  // namespace mycc
