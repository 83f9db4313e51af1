// `mycc-tune log keygen`, and what `log export --sign` and `log import --verify` do: signed record packs
// (db/record_pack.h). Errors name the file and what was expected.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "db/tuning_log.h"
#include "mycc_tune/log_commands.h"

namespace mycc {

struct LogKeygenArgs {
  std::string output;  // the private key's file, a new one; the public key's has .pub behind it
};
absl::Status LogKeygenCommand(const LogKeygenArgs& args, std::ostream& out);

// REQUIRES: args.sign is not empty.
absl::Status ExportSigned(const LogExportArgs& args, std::ostream& out);
// REQUIRES: args.verify is not empty.
absl::Status ImportSigned(const LogImportArgs& args, TuningLog* log, std::ostream& out);

}  // namespace mycc
