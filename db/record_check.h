// The conditions under which a record may be stored, and under which it may rank as the best. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "proto/records.pb.h"

namespace mycc {

// InvalidArgument naming the field, what is wrong with it and what was expected. Checked are the key, the
// trace, the stamp, the status, the times of an OK result, and that every text is UTF-8.
absl::Status CheckRecord(const v1::Record& record);
// The same without the key and the trace.
absl::Status CheckContent(const v1::Record& record);

// True for a record that ranks: OK, and verified against the reference.
bool IsVerifiedOk(const v1::Record& record);

// True for a record that may be served as best: that, and proven (proto/proof.h).
bool IsServable(const v1::Record& record);

// The seconds that a record ranks by: its own, or those that a final round has made of them.
double RankSeconds(const v1::Timing& timing);

}  // namespace mycc
