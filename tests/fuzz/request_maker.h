// Makes any message of the protocol from a fuzzer's bytes, by the names of its fields: ids, leases, workloads
// and results are mostly those of a server that the fuzzer talks to, and sometimes nonsense. Thread rule:
// thread-compatible.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>
#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <vector>

#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"

namespace mycc {

// An assignment, and the session that it was given to.
struct GivenLease {
  std::string session;
  v1::Assignment assignment;
};

class RequestMaker {
 public:
  explicit RequestMaker(FuzzedDataProvider* bytes) : bytes_(bytes) {}

  void Fill(google::protobuf::Message* message) { FillAt(message, 0); }

  // The server's answers so far.
  std::vector<std::string> sessions, jobs;
  std::vector<GivenLease> leases;

 private:
  bool OneIn(int n) { return bytes_->ConsumeIntegralInRange<int>(1, n) == 1; }
  void FillAt(google::protobuf::Message* message, int depth);
  void FillField(google::protobuf::Message* message, const google::protobuf::FieldDescriptor* field,
                 int depth);
  // Sets the message to one that the server may take; false where it knows none of the kind.
  bool FillSound(google::protobuf::Message* message);
  bool FillInSession(google::protobuf::Message* message);
  void FillRegistration(v1::RegisterRequest* request);
  void FillReport(const GivenLease& given, v1::Report* report);
  const GivenLease& AnyLease();  // REQUIRES: there is one
  std::string Text(const std::string& name);
  double Number(const std::string& name);

  FuzzedDataProvider* const bytes_;
};

}  // namespace mycc
