#include "db/pack_reader.h"

#include <istream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "db/json_record.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kRecordStart[] = R"({"record":)", kManifestStart[] = R"({"manifest":)";
constexpr char kPlainStart[] = R"({"mycc_tuning_log":)";
constexpr size_t kMostShownBytes = 100;

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

}  // namespace

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

absl::Status PackReader::ReadHeader() {
  MYCC_RETURN_IF_ERROR(NextLine("the first line of a signed pack"));
  if (absl::StartsWith(line_, kPlainStart)) {
    return Bad("is an export without a signature; expected a pack that `log export --sign` wrote");
  }
  if (line_ != kPackHeader) return Bad(absl::StrCat("expected ", kPackHeader, " first"));
  Digest();
  return absl::OkStatus();
}

absl::StatusOr<bool> PackReader::NextRecord() {
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

absl::StatusOr<std::string> PackReader::ReadSignature() {
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

absl::Status PackReader::Bad(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(origin_, ":", number_, ": ", what));
}

absl::Status PackReader::NextLine(const std::string& expected) {
  bool ends = false;
  ++number_;
  const bool has_line = ReadLine(in_, &line_, &ends);
  if (in_.bad()) return absl::DataLossError(absl::StrCat(origin_, ": cannot be read"));
  if (line_.size() > kMostLineBytes) return Bad("the line is too long; expected at most 64 MiB");
  if (!has_line || !ends) return Bad(absl::StrCat("the file ends here; expected ", expected));
  return absl::OkStatus();
}

void PackReader::Digest() {
  digest_.Add(line_);
  digest_.Add("\n");
}

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

}  // namespace mycc
