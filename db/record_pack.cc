#include "db/record_pack.h"

#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "base/status.h"
#include "db/record_check.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kHeader[] = R"({"mycc_record_pack":1})";
constexpr char kRecordStart[] = R"({"record":)", kManifestStart[] = R"({"manifest":)";
constexpr char kPlainStart[] = R"({"mycc_tuning_log":)";
constexpr size_t kMostShownBytes = 100;

std::string ManifestLine(const PackManifest& manifest) {
  return ordered_json{{"manifest", ordered_json{{"records", manifest.records},
                                                {"sha256", manifest.sha256},
                                                {"key", manifest.signer.key_id},
                                                {"signer", manifest.signer.name},
                                                {"signed_unix_micros", manifest.signed_unix_micros}}}}
      .dump();
}

std::string SignatureLine(const std::string& signature) {
  return ordered_json{{"signature", absl::Base64Escape(signature)}}.dump();
}

absl::StatusOr<PackManifest> ReadManifest(const std::string& line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  PackManifest manifest;
  const json value = object.is_object() ? object.value("manifest", json()) : json();
  const bool is_whole = value.is_object() && value.size() == 5 && value.contains("records") &&
                        value["records"].is_number_unsigned() && value.contains("sha256") &&
                        value["sha256"].is_string() && value.contains("key") && value["key"].is_string() &&
                        value.contains("signer") && value["signer"].is_string() &&
                        value.contains("signed_unix_micros") &&
                        value["signed_unix_micros"].is_number_unsigned();
  if (!is_whole) {
    return absl::InvalidArgumentError(
        "expected a manifest with the keys records, sha256, key, signer and signed_unix_micros");
  }
  manifest.records = value["records"];
  manifest.sha256 = value["sha256"];
  manifest.signer = {value["key"], value["signer"]};
  manifest.signed_unix_micros = value["signed_unix_micros"];
  return manifest;
}

// "by key 3a... (ann@host)", as a pack that nobody has vouched for says it.
std::string ClaimedSigner(const absl::StatusOr<PackManifest>& manifest) {
  if (!manifest.ok()) return "by an unknown key";
  const auto shown = [](const std::string& text) { return Printable(text.substr(0, kMostShownBytes)); };
  return absl::StrCat("by key ", shown(manifest->signer.key_id), " (", shown(manifest->signer.name), ")");
}

// The lines of a pack, one after the other, with the digest of those before the manifest.
class PackReader {
 public:
  PackReader(std::istream& in, std::string origin) : in_(in), origin_(std::move(origin)) {}

  absl::Status ReadHeader() {
    MYCC_RETURN_IF_ERROR(NextLine("the first line of a signed pack"));
    if (absl::StartsWith(line_, kPlainStart)) {
      return Bad("is an export without a signature; expected a pack that `log export --sign` wrote");
    }
    if (line_ != kHeader) return Bad(absl::StrCat("expected ", kHeader, " first"));
    Digest();
    return absl::OkStatus();
  }

  // True: line() is a record. False: it is the manifest.
  absl::StatusOr<bool> NextRecord() {
    MYCC_RETURN_IF_ERROR(NextLine("a record or the manifest, so the pack is cut short"));
    if (absl::StartsWith(line_, kManifestStart)) {
      sha256_ = digest_.Hex();
      return false;
    }
    if (!absl::StartsWith(line_, kRecordStart)) return Bad("expected a record or the manifest");
    Digest();
    ++records_;
    return true;
  }

  // Reads the signature, which is the end.
  absl::StatusOr<std::string> ReadSignature() {
    MYCC_RETURN_IF_ERROR(NextLine("the signature, so the pack is cut short"));
    std::string signature;
    const json object = json::parse(line_, nullptr, /*allow_exceptions=*/false);
    const bool is_read = object.is_object() && object.contains("signature") &&
                         object["signature"].is_string() &&
                         absl::Base64Unescape(object["signature"].get<std::string>(), &signature);
    if (!is_read || SignatureLine(signature) != line_) return Bad("expected the signature, in base 64");
    if (in_.peek() != std::istream::traits_type::eof()) {
      ++number_;
      return Bad(
          "the pack is signed up to the line before; expected the end (packs are not joined, each is "
          "imported by itself)");
    }
    return signature;
  }

  const std::string& line() const { return line_; }
  int64_t records() const { return records_; }
  const std::string& sha256() const { return sha256_; }  // after the manifest

  absl::Status Bad(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(origin_, ":", number_, ": ", what));
  }

 private:
  absl::Status NextLine(const std::string& expected) {
    bool ends = false;
    ++number_;
    const bool has_line = ReadLine(in_, &line_, &ends);
    if (in_.bad()) return absl::DataLossError(absl::StrCat(origin_, ": cannot be read"));
    if (line_.size() > kMostLineBytes) return Bad("the line is too long; expected at most 64 MiB");
    if (!has_line || !ends) return Bad(absl::StrCat("the file ends here; expected ", expected));
    return absl::OkStatus();
  }

  void Digest() {
    digest_.Add(line_);
    digest_.Add("\n");
  }

  std::istream& in_;
  const std::string origin_;
  std::string line_;
  int64_t number_ = 0, records_ = 0;
  Sha256Stream digest_;
  std::string sha256_;
};

absl::Status NotSignedBy(const std::string& origin, const std::vector<PublicKey>& trusted,
                         const absl::StatusOr<PackManifest>& claimed) {
  std::vector<std::string> ids;
  for (const PublicKey& key : trusted) ids.push_back(key.id());
  for (const std::string& id : ids) {
    if (claimed.ok() && claimed->signer.key_id == id) {
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ": the signature of key ", id,
                       " does not fit the manifest; expected a pack as it was signed"));
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(origin, ": is signed ", ClaimedSigner(claimed),
                                                    "; expected key ", absl::StrJoin(ids, " or ")));
}

// Reads a whole pack, and checks every byte of it.
absl::StatusOr<PackManifest> CheckPack(std::istream& in, const std::string& origin,
                                       const std::vector<PublicKey>& trusted) {
  PackReader reader(in, origin);
  MYCC_RETURN_IF_ERROR(reader.ReadHeader());
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool is_record, reader.NextRecord());
    if (!is_record) break;
  }
  const std::string line = reader.line();
  MYCC_ASSIGN_OR_RETURN(const std::string signature, reader.ReadSignature());
  bool is_signed = false;
  for (const PublicKey& key : trusted)
    is_signed = is_signed || key.Verifies(absl::StrCat(kPackDomain, line), signature);
  absl::StatusOr<PackManifest> manifest = ReadManifest(line);
  if (!is_signed) return NotSignedBy(origin, trusted, manifest);
  if (!manifest.ok()) return reader.Bad(std::string(manifest.status().message()));
  if (manifest->records != reader.records()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": has ", reader.records(),
                                                   " records; expected the ", manifest->records,
                                                   " that were signed"));
  }
  if (manifest->sha256 != reader.sha256()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": its records are not those that were signed: the SHA-256 is ", reader.sha256(),
                     "; expected ", manifest->sha256));
  }
  return manifest;
}

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
  write(kHeader);
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
