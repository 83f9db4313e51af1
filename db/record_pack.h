// Signed record packs: how people share what they measured. A pack is JSON lines, signed as a whole:
//
//   {"mycc_record_pack":1}
//   {"record":{...}}             as in an export (json_lines.h), any number
//   {"manifest":{"records":2,"sha256":"9f...","key":"3a...","signer":"ann@host",
//                "signed_unix_micros":1767225600000000}}   (on one line)
//   {"signature":"MEQC..."}      Ed25519 in base 64, and the end
//
// `sha256` is of all bytes before the manifest's line. The signature is of kPackDomain and the manifest's
// line, so every byte of the file counts: one that is changed, moved, dropped or added is noticed. A pack has
// no pins or bans, which are their owner's decisions. Records come in as foreign ones (foreign_table.h).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/signature.h"
#include "db/foreign_table.h"
#include "db/json_record.h"
#include "db/pack_reader.h"
#include "db/record_filter.h"
#include "db/tuning_log.h"

namespace mycc {

inline constexpr char kPackKey[] = "mycc_record_pack";

// Writes the records of the filter that may be served, are not superseded and not banned. Nothing is held but
// a page of them. Returns the manifest.
absl::StatusOr<PackManifest> ExportPack(const TuningLog& log, const RecordFilter& filter,
                                        const PrivateKey& key, const std::string& signer, std::ostream& out);

struct PackCounts {
  PackManifest manifest;
  int64_t added = 0;
  int64_t known = 0;     // the log had them, or newer ones of the same signer
  int64_t left_out = 0;  // they are not verified and OK: nothing to measure again
};
// Adds the records of a pack that one of the keys has signed, all or nothing. The whole pack is checked
// before the first record is parsed, and once more while it is read. REQUIRES: `in` can be read twice.
// InvalidArgument "ORIGIN: what is wrong; what was expected"; FailedPrecondition when another key has signed.
absl::StatusOr<PackCounts> ImportPack(std::istream& in, const std::string& origin,
                                      const std::vector<PublicKey>& trusted, TuningLog* log,
                                      const CheckTarget& check_target = nullptr);

}  // namespace mycc
