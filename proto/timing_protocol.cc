#include "proto/timing_protocol.h"

namespace mycc {

v1::TimingProtocol ProtocolFor(const Target& target, v1::TimingProtocol asked) {
  if (asked != v1::TIMING_PROTOCOL_UNSPECIFIED) return asked;
  return target.kind == TargetKind::kCuda ? v1::TIMING_PROTOCOL_COLD : v1::TIMING_PROTOCOL_WARM;
}

std::vector<v1::TimingProtocol> ProtocolsOf(const Target& target, v1::TimingProtocol asked) {
  const v1::TimingProtocol first = ProtocolFor(target, asked);
  if (asked != v1::TIMING_PROTOCOL_UNSPECIFIED) return {first};
  const bool is_warm = first == v1::TIMING_PROTOCOL_WARM;
  return {first, is_warm ? v1::TIMING_PROTOCOL_COLD : v1::TIMING_PROTOCOL_WARM};
}

}  // namespace mycc
