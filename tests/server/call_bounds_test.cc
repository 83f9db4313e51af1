// The bounds of one message, and those of all calls of a caller.
#include <cmath>
#include <limits>

#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/call_ledger.h"
#include "server/call_limits.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

TEST(CallLimitsTest, EveryRowNamesAField) {
  std::set<std::string> fields;
  for (const auto* file : {v1::Record::descriptor()->file(), v1::LeaseRequest::descriptor()->file(),
                           v1::BestRequest::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      const auto* const type = file->message_type(i);
      for (int j = 0; j < type->field_count(); ++j)
        fields.insert(type->name() + "." + type->field(j)->name());
      for (int n = 0; n < type->nested_type_count(); ++n) {
        for (int j = 0; j < type->nested_type(n)->field_count(); ++j)
          fields.insert(type->nested_type(n)->name() + "." + type->nested_type(n)->field(j)->name());
      }
    }
  }
  fields.insert({"Grouping.parts", "Grouping.more"});
  for (const FieldLimit& limit : FieldLimits())
    EXPECT_TRUE(fields.contains(std::string(limit.field))) << limit.field;
}

TEST(CallLimitsTest, TextsAndListsAreBounded) {
  v1::RegisterRequest request;
  request.set_worker(std::string(256, 'w'));
  for (int i = 0; i < 64; ++i) request.add_devices()->set_device("cpu");
  EXPECT_TRUE(CheckMessageLimits(request).ok());
  request.set_worker(std::string(257, 'w'));
  EXPECT_EQ(CheckMessageLimits(request).message(),
            "RegisterRequest.worker has 257 bytes; expected at most 256");
  request.set_worker("w");
  request.add_devices();
  EXPECT_EQ(CheckMessageLimits(request).message(),
            "RegisterRequest.devices has 65 entries; expected at most 64");
  request.mutable_devices()->RemoveLast();
  request.mutable_devices(3)->set_device(std::string(1000, 'd'));
  EXPECT_THAT(std::string(CheckMessageLimits(request).message()),
              HasSubstr("DeviceOffer.device has 1000 bytes"));
  v1::SubmitJobRequest job;
  job.mutable_spec()->add_tasks()->set_workload(std::string(kMostTextBytes + 1, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckMessageLimits(job))) << "a text that the table does not name";
  v1::RegisterRequest targets;
  targets.add_build_targets(std::string(kMostTextBytes + 1, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckMessageLimits(targets))) << "an entry of a list";
}

TEST(CallLimitsTest, ATimeToWaitIsANumber) {
  v1::LeaseRequest request;
  for (const double wait : {0.0, 30.0, 1e300}) {
    request.set_wait_seconds(wait);
    EXPECT_TRUE(CheckMessageLimits(request).ok()) << wait;
  }
  for (const double wait : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    request.set_wait_seconds(wait);
    EXPECT_TRUE(absl::IsInvalidArgument(CheckMessageLimits(request))) << wait;
  }
}

CallBounds Small() {
  return {.calls_of_one = 2,
          .calls = 3,
          .bytes_of_one = 100,
          .bytes = 150,
          .sessions_of_one = 2,
          .sessions = 3,
          .silent_seconds = 10};
}

TEST(CallLedgerTest, OneCallerCannotTakeThePlaceOfOthers) {
  CallLedger ledger(Small());
  EXPECT_TRUE(ledger.Begin("ann", 1).ok());
  EXPECT_TRUE(ledger.Begin("ann", 1).ok());
  const absl::Status third = ledger.Begin("ann", 1);
  EXPECT_TRUE(absl::IsResourceExhausted(third));
  EXPECT_EQ(third.message(), "2 calls of ann are under way; expected fewer, try again later");
  EXPECT_TRUE(ledger.Begin("bob", 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ledger.Begin("eve", 1))) << "in all";
  ledger.End("ann", 1);
  EXPECT_TRUE(ledger.Begin("ann", 1).ok());
  for (const char* name : {"ann", "ann", "bob"}) ledger.End(name, 1);
  EXPECT_EQ(ledger.calls(), 0);
  EXPECT_EQ(ledger.bytes(), 0);
}

TEST(CallLedgerTest, BytesAreBoundedToo) {
  CallLedger ledger(Small());
  EXPECT_TRUE(ledger.Begin("ann", 90).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ledger.Begin("ann", 20)));
  EXPECT_TRUE(ledger.Begin("bob", 50).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ledger.Begin("bob", 20))) << "in all";
  ledger.End("ann", 90);
  ledger.End("bob", 50);
  EXPECT_TRUE(ledger.Begin("ann", 1000).ok()) << "one message alone is taken";
}

TEST(CallLedgerTest, ASessionIsItsCallersOwn) {
  CallLedger ledger(Small());
  ledger.AddSession("s1", "w1", "ann", 0);
  EXPECT_TRUE(ledger.CheckSession("s1", "ann", 1).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ledger.CheckSession("s1", "eve", 1)));
  EXPECT_TRUE(ledger.CheckSession("unknown", "eve", 1).ok()) << "the server says so itself";
  EXPECT_EQ(ledger.OwnerOf("w1"), "ann");
  ledger.AddSession("s2", "w1", "ann", 2);
  EXPECT_TRUE(ledger.CheckSession("s1", "eve", 2).ok()) << "the worker has another one";
  ledger.RemoveSession("s2");
  EXPECT_EQ(ledger.OwnerOf("w1"), "");
}

TEST(CallLedgerTest, SessionsAreBoundedAndSilentOnesMakeRoom) {
  CallLedger ledger(Small());
  ledger.AddSession("s1", "w1", "ann", 0);
  ledger.AddSession("s2", "w2", "ann", 8);
  EXPECT_TRUE(absl::IsResourceExhausted(ledger.CheckRoom("ann", 9)));
  EXPECT_TRUE(ledger.CheckRoom("bob", 9).ok());
  EXPECT_TRUE(ledger.CheckRoom("ann", 11).ok()) << "w1 is silent";
  EXPECT_EQ(ledger.OwnerOf("w1"), "");
  EXPECT_EQ(ledger.OwnerOf("w2"), "ann");
}

}  // namespace
}  // namespace mycc
