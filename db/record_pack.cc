#include "db/record_pack.h"

#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "db/record_check.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using nlohmann::json;

// REQUIRES: the mutex, and a transaction.
absl::Status AddRecords(PackReader* reader, int64_t signer, const CheckTarget& check_target, TuningLog* log,
                        PackCounts* counts) {
  MYCC_RETURN_IF_ERROR(reader->ReadHeader());
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool is_record, reader->NextRecord());
    if (!is_record) return absl::OkStatus();
    const json object = json::parse(reader->line(), nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || object.size() != 1)
      return reader->Bad("expected one JSON object with a record");
    const absl::StatusOr<v1::Record> record = RecordFromJson(object.front(), check_target);
    if (!record.ok()) return reader->Bad(std::string(record.status().message()));
    if (!IsVerifiedOk(*record)) {
      ++counts->left_out;
      continue;
    }
    const absl::StatusOr<bool> added = InsertForeign(log->database(), *record, signer, log->now());
    if (absl::IsInvalidArgument(added.status())) return reader->Bad(std::string(added.status().message()));
    MYCC_RETURN_IF_ERROR(added.status());
    ++(*added ? counts->added : counts->known);
  }
}

}  // namespace

absl::StatusOr<PackManifest> ExportPack(const TuningLog& log, const RecordFilter& filter,
                                        const PrivateKey& key, const std::string& signer, std::ostream& out) {
  PackManifest manifest{.signer = {key.public_key().id(), ToUtf8(signer)}, .signed_unix_micros = log.now()};
  Sha256Stream digest;
  const auto write = [&](const std::string& line) {
    digest.Add(line);
    digest.Add("\n");
    out << line << "\n";
  };
  write(kPackHeader);
  RecordFilter current = filter;
  current.only_current = true;
  MYCC_RETURN_IF_ERROR(log.ForEach(current, [&](const StoredRecord& stored) {
    const bool is_banned = stored.override_by && stored.override_by->kind == OverrideKind::kBan;
    if (is_banned || !IsServable(stored.record)) return absl::OkStatus();
    write(RecordLine(stored.record));
    ++manifest.records;
    return out.good() ? absl::OkStatus() : absl::ResourceExhaustedError("cannot write the pack");
  }));
  manifest.sha256 = digest.Hex();
  const std::string line = ManifestLine(manifest);
  MYCC_ASSIGN_OR_RETURN(const std::string signature, key.Sign(absl::StrCat(kPackDomain, line)));
  out << line << "\n" << SignatureLine(signature) << "\n";
  out.flush();
  if (!out.good()) return absl::ResourceExhaustedError("cannot write the pack");
  return manifest;
}

absl::StatusOr<PackCounts> ImportPack(std::istream& in, const std::string& origin,
                                      const std::vector<PublicKey>& trusted, TuningLog* log,
                                      const CheckTarget& check_target) {
  PackCounts counts;
  MYCC_ASSIGN_OR_RETURN(counts.manifest, CheckPack(in, origin, trusted));
  in.clear();
  in.seekg(0);
  if (!in.good()) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin, ": cannot be read twice, to check it before its records are taken; expected a regular file"));
  }
  MutexLock lock(log->database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(log->database()));
  MYCC_ASSIGN_OR_RETURN(const int64_t signer, EnsureSigner(log->database(), counts.manifest.signer));
  PackReader reader(in, origin);
  MYCC_RETURN_IF_ERROR(AddRecords(&reader, signer, check_target, log, &counts));
  if (reader.sha256() != counts.manifest.sha256)
    return absl::InvalidArgumentError(absl::StrCat(origin, ": was changed while it was read"));
  MYCC_RETURN_IF_ERROR(transaction.Commit());
  return counts;
}

}  // namespace mycc
