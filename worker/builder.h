// Builds one candidate, from its text to a shared library, in a process of its own under a fork server
// (process/fork_server.h). A back end that crashes or hangs costs that candidate alone. Thread rule:
// re-entrant.
#pragma once

#include "proto/measure.pb.h"

namespace mycc {

v1::BuildResponse HandleBuildRequest(const v1::BuildRequest& request);

}  // namespace mycc
