// The work of the builder's processes: one candidate from text to a shared library. Runs in a nursery
// (worker/nursery.h), so a back end that crashes or never ends costs that candidate alone. Thread rule:
// re-entrant.
#pragma once

#include "proto/measure.pb.h"

namespace mycc {

v1::BuildResponse HandleBuildRequest(const v1::BuildRequest& request);

}  // namespace mycc
