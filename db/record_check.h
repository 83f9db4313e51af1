// What makes a record fit to be kept, and to be best. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "proto/records.pb.h"

namespace mycc {

// InvalidArgument naming the field, what is wrong with it and what was expected. Checked are the key, the
// trace, the stamp, the status, the times of an OK result, and that every text is UTF-8.
absl::Status CheckRecord(const v1::Record& record);

// True for what ranks: OK, and verified against the reference.
bool IsVerifiedOk(const v1::Record& record);

// True for what may be served as best: that, and proven (proto/proof.h).
bool IsServable(const v1::Record& record);

// What a time ranks by: its own seconds, or what a final round has made of them.
double RankSeconds(const v1::Timing& timing);

}  // namespace mycc
