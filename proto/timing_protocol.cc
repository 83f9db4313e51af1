#include "proto/timing_protocol.h"

namespace mycc {

v1::TimingProtocol ProtocolFor(const Target& target, v1::TimingProtocol asked, KernelUse use) {
  return ProtocolsOf(target, asked, use).front();
}

std::vector<v1::TimingProtocol> ProtocolsOf(const Target& target, v1::TimingProtocol asked, KernelUse use) {
  if (asked != v1::TIMING_PROTOCOL_UNSPECIFIED) return {asked};
  if (target.kind == TargetKind::kCuda) return {v1::TIMING_PROTOCOL_COLD, v1::TIMING_PROTOCOL_WARM};
  if (use == KernelUse::kInModel)
    return {v1::TIMING_PROTOCOL_MODEL, v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD};
  return {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_MODEL, v1::TIMING_PROTOCOL_COLD};
}

}  // namespace mycc
