// The wire and the logs between versions: all that the protos of the last release said still holds, so
// version N workers, clients and logs go with a version N+1 server. tests/golden/wire.txt has a line for each
// field, value and call of the last release. MYCC_UPDATE_GOLDEN=1 writes the lines of this build, which is
// right after a release and wrong before.
#include <google/protobuf/descriptor.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_state.pb.h"
#include "proto/records.pb.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"

namespace mycc {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::EnumDescriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::FileDescriptor;
using ::google::protobuf::ServiceDescriptor;
using ::testing::IsEmpty;
using Lines = std::set<std::string>;

std::string TypeOf(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

void AddEnum(const EnumDescriptor& type, Lines* lines) {
  for (int i = 0; i < type.value_count(); ++i) {
    lines->insert(
        absl::StrCat("value ", type.full_name(), " ", type.value(i)->name(), " = ", type.value(i)->number()));
  }
}

void AddMessage(const Descriptor& message, Lines* lines) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    lines->insert(absl::StrCat("field ", message.full_name(), " ", field.is_repeated() ? "repeated " : "",
                               TypeOf(field), " ", field.name(), " = ", field.number()));
  }
  for (int i = 0; i < message.nested_type_count(); ++i) AddMessage(*message.nested_type(i), lines);
  for (int i = 0; i < message.enum_type_count(); ++i) AddEnum(*message.enum_type(i), lines);
}

void AddService(const ServiceDescriptor& service, Lines* lines) {
  for (int i = 0; i < service.method_count(); ++i) {
    const auto& method = *service.method(i);
    lines->insert(absl::StrCat("call ", method.full_name(), "(", method.input_type()->full_name(),
                               ") returns ", method.output_type()->full_name()));
  }
}

Lines LinesOf(const FileDescriptor& file) {
  Lines lines;
  for (int i = 0; i < file.message_type_count(); ++i) AddMessage(*file.message_type(i), &lines);
  for (int i = 0; i < file.enum_type_count(); ++i) AddEnum(*file.enum_type(i), &lines);
  for (int i = 0; i < file.service_count(); ++i) AddService(*file.service(i), &lines);
  return lines;
}

// measure.proto and search.proto are between processes of one program, and may change.
Lines LinesOfThisBuild() {
  Lines all;
  for (const FileDescriptor* const file :
       {v1::Record::descriptor()->file(), v1::RegisterRequest::descriptor()->file(),
        v1::JobSpec::descriptor()->file(), v1::StoredJob::descriptor()->file()})
    all.merge(LinesOf(*file));
  return all;
}

std::string GoldenPath() {
  const char* const sources = std::getenv("MYCC_SOURCE_DIR");
  return absl::StrCat(sources == nullptr ? "." : sources, "/tests/golden/wire.txt");
}

TEST(WireTest, AllThatTheLastReleaseSaidStillHolds) {
  const Lines now = LinesOfThisBuild();
  if (std::getenv("MYCC_UPDATE_GOLDEN") != nullptr) {
    std::ofstream golden(GoldenPath());
    for (const std::string& line : now) golden << line << "\n";
  }
  std::ifstream golden(GoldenPath());
  Lines missing;
  int read = 0;
  for (std::string line; std::getline(golden, line); ++read)
    if (!now.contains(line)) missing.insert(line);
  EXPECT_GT(read, 200) << GoldenPath();
  EXPECT_THAT(missing, IsEmpty()) << "fields are added, never changed or reused";
}

TEST(WireTest, AChangedNumberTypeOrNameIsNoticed) {
  const Lines now = LinesOfThisBuild();
  EXPECT_TRUE(now.contains("field mycc.v1.DeviceOffer string device = 1"));
  EXPECT_TRUE(now.contains("field mycc.v1.Report repeated mycc.v1.MeasureResult rivals = 3"));
  EXPECT_TRUE(now.contains("value mycc.v1.TimingProtocol TIMING_PROTOCOL_MODEL = 3"));
  EXPECT_TRUE(
      now.contains("call mycc.v1.WorkerService.Lease(mycc.v1.LeaseRequest) returns mycc.v1.LeaseResponse"));
  EXPECT_FALSE(now.contains("field mycc.v1.DeviceOffer string device = 2"));
}

}  // namespace
}  // namespace mycc
