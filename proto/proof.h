// When a kernel counts as proven: enough launches under strain left the same bits, so its results do not
// depend on timing. Pure functions.
#pragma once

#include "proto/records.pb.h"

namespace mycc {

// Launches under strain that leave the same bits. More are made where the kernel is quick.
inline constexpr uint32_t kProvenLaunches = 10;

// True too of kernels measured before launches were counted. REQUIRES: the verification has passed.
inline bool IsProven(const v1::Verification& verification) {
  return verification.launches() == 0 || verification.strained_launches() >= kProvenLaunches;
}

}  // namespace mycc
