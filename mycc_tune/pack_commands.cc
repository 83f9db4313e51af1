#include "mycc_tune/pack_commands.h"

#include <fstream>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/os_error.h"
#include "base/output_file.h"
#include "base/plural.h"
#include "base/signature.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "command/times.h"
#include "db/foreign_table.h"
#include "db/record_pack.h"
#include "mycc_tune/left_out.h"
#include "mycc_tune/user_name.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

absl::Status TargetTrouble(const std::string& target) { return ParseTarget(target).status(); }

void WritePackCounts(const std::string& pack, const std::string& log, const PackCounts& counts,
                     int64_t waiting, std::ostream& out) {
  const PackManifest& manifest = counts.manifest;
  out << absl::StrFormat("%s: signed by %s (key %s) at %s: %d foreign records added to %s, %d known already",
                         pack, Printable(manifest.signer.name), manifest.signer.key_id,
                         FormatUnixMicros(manifest.signed_unix_micros), counts.added, log, counts.known);
  if (counts.left_out > 0)
    out << absl::StrFormat(", %d that are no verified times were left out", counts.left_out);
  out << "\n";
  if (waiting > 0) {
    out << absl::StrFormat("%d foreign records wait to be measured here: mycc-tune reverify --log %s\n",
                           waiting, log);
  }
}

}  // namespace

absl::Status LogKeygenCommand(const LogKeygenArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const PublicKey key, MakeKeyPair(args.output));
  out << args.output << ": a private key, for `log export --sign`; keep it\n"
      << args.output << ".pub: its public key " << key.id() << ", for the `log import --verify` of others\n";
  return absl::OkStatus();
}

absl::Status ExportSigned(const LogExportArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const PrivateKey key, PrivateKey::Read(args.sign));
  LeftOut left_out;
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  left_out.Watch(log.get());
  const std::string signer = args.signer.empty() ? UserAtHost() : args.signer;
  if (args.output.empty() || IsStandardOutput(args.output))
    return left_out.After(ExportPack(*log, args.filter, key, signer, out).status());
  MYCC_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(args.output));
  const absl::StatusOr<PackManifest> manifest = ExportPack(*log, args.filter, key, signer, file.stream());
  MYCC_RETURN_IF_ERROR(file.CloseDurably());
  MYCC_RETURN_IF_ERROR(manifest.status());
  MYCC_RETURN_IF_ERROR(file.Commit());
  out << args.output << ": " << HowMany(manifest->records, "record") << " of " << args.log << ", signed by "
      << Printable(manifest->signer.name) << " with key " << manifest->signer.key_id << "\n";
  return left_out.After(absl::OkStatus());
}

absl::Status ImportSigned(const LogImportArgs& args, TuningLog* log, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<PublicKey> trusted, PublicKey::ReadAll(args.verify));
  for (const std::string& input : args.inputs) {
    std::ifstream in(input, std::ios::binary);
    if (!in) return OsError("read", input);
    MYCC_ASSIGN_OR_RETURN(const PackCounts counts, ImportPack(in, input, trusted, log, TargetTrouble));
    MYCC_ASSIGN_OR_RETURN(const ForeignCounts foreign, CountForeign(*log));
    WritePackCounts(input, args.log, counts, foreign.waiting, out);
  }
  return absl::OkStatus();
}

}  // namespace mycc
