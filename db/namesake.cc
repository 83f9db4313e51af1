#include "db/namesake.h"

#include <vector>

#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/message_json.h"
#include "db/record_table.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr size_t kDigestDigits = 16;

v1::Record ContentOf(v1::Record record) {
  record.clear_trial();
  record.clear_recorded_unix_micros();
  record.set_trace(StoredTrace(record.trace()));
  return record;
}

// Bytes are quick to compare, and nearly always equal where the contents are. JSON knows NaN from no other.
bool HaveSameContent(const v1::Record& a, const v1::Record& b) {
  return ContentOf(a).SerializeAsString() == ContentOf(b).SerializeAsString() ||
         ContentDigest(a) == ContentDigest(b);
}

// The name that a record was made under.
std::string MadeAs(const v1::Record& record) {
  const std::string plain = PlainTrialName(record.trial());
  const bool is_derived =
      plain != record.trial() && NamesakeName(plain, ContentDigest(record)) == record.trial();
  return is_derived ? plain : record.trial();
}

}  // namespace

std::string ContentDigest(const v1::Record& record) {
  return Sha256Hex(MessageToJson(ContentOf(record)).dump()).substr(0, kDigestDigits);
}

absl::StatusOr<bool> HasNameOf(Database* database, const std::string& trial) {
  MYCC_ASSIGN_OR_RETURN(const int64_t has_name,
                        database->ReadInt("SELECT EXISTS (SELECT 1 FROM records WHERE trial = ?1) OR"
                                          " EXISTS (SELECT 1 FROM records WHERE trial >= ?2 AND trial < ?3)",
                                          {trial, NamesakeName(trial, ""), NamesakeName(trial, "g")}));
  return has_name != 0;
}

absl::StatusOr<PlaceOfRecord> FindPlace(Database* database, const v1::Record& record) {
  const std::string name = MadeAs(record);
  MYCC_ASSIGN_OR_RETURN(const bool is_known, HasNameOf(database, name));
  if (!is_known) return PlaceOfRecord{.trial = name};
  MYCC_ASSIGN_OR_RETURN(
      const std::vector<StoredRecord> namesakes,
      ReadRecords(database, SelectRecords() + "WHERE r.trial = ?1 OR (r.trial >= ?2 AND r.trial < ?3)",
                  {name, NamesakeName(name, ""), NamesakeName(name, "g")}));
  PlaceOfRecord place{.trial = name, .has_namesakes = !namesakes.empty()};
  for (const StoredRecord& other : namesakes) {
    if (HaveSameContent(other.record, record)) {
      place.known_id = other.id;
      return place;
    }
  }
  for (const StoredRecord& other : namesakes) {
    if (other.record.trial() != name) continue;
    const std::string digest = ContentDigest(record), of_other = ContentDigest(other.record);
    if (digest < of_other) {
      // Among its namesakes it stays behind the smaller digests, so that equal stamps keep their order.
      MYCC_RETURN_IF_ERROR(database->Run("UPDATE records SET trial = ?2 WHERE id = ?1",
                                         {other.id, NamesakeName(name, of_other)}));
    } else {
      place.trial = NamesakeName(name, digest);
    }
  }
  return place;
}

}  // namespace mycc
