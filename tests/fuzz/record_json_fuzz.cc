// Any text is no JSON, is refused with the key that is wrong, or is a record that survives being exported and
// imported.
#include <string>

#include "base/check.h"
#include "db/message_json.h"
#include "proto/records.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto json = nlohmann::json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return 0;
  mycc::v1::Record record;
  const absl::Status read = mycc::MessageFromJson(json, &record);
  if (!read.ok()) {
    MYCC_CHECK(absl::IsInvalidArgument(read)) << read;
    return 0;
  }
  const std::string text = mycc::MessageToJson(record).dump();
  mycc::v1::Record again;
  const absl::Status reread = mycc::MessageFromJson(nlohmann::json::parse(text), &again);
  MYCC_CHECK(reread.ok()) << reread << "\n" << text;
  MYCC_CHECK(mycc::MessageToJson(again).dump() == text) << text;
  return 0;
}
