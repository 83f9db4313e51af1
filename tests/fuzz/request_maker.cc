#include "tests/fuzz/request_maker.h"

#include <algorithm>
#include <limits>

#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kMostDepth = 6, kMostEntries = 3, kMostRandomBytes = 12;

// The texts that fields of a name may have besides what the server has said.
const std::map<std::string, std::vector<std::string>>& KnownTexts() {
  static const auto* const texts = new std::map<std::string, std::vector<std::string>>{
      {"worker", {"w0", "w1", "w2"}},
      {"instance", {"i0", "i1", "i2", ""}},
      {"replaces", {"i0", "i1", "i2", ""}},
      {"device", {"cpu", "cpu", "cpu", "cuda:0"}},
      {"target",
       {kTestTarget, kTestTarget, kTestTarget, "", "v1 cuda sm=90a sms=132",
        "v1 cpu mcpu=skylake-avx512 threads=2"}},
      {"workload", {kTestWorkload, kOtherWorkload}},
      {"strategy", {"random", "random", "evolutionary", "listed"}},
      {"client", {"c0", "c1", ""}},
      {"submission", {"s0", "s1", ""}},
      {"owner", {"ann", "bob"}},
      {"boot", {"b0", "b1"}},
  };
  return *texts;
}

}  // namespace

std::string RequestMaker::Text(const std::string& name) {
  if (name == "session" && !sessions.empty() && !OneIn(16))
    return sessions[bytes_->ConsumeIntegralInRange<size_t>(0, sessions.size() - 1)];
  if (name == "job" && !jobs.empty() && !OneIn(16))
    return jobs[bytes_->ConsumeIntegralInRange<size_t>(0, jobs.size() - 1)];
  const auto known = KnownTexts().find(name);
  if (known != KnownTexts().end() && !OneIn(16))
    return known->second[bytes_->ConsumeIntegralInRange<size_t>(0, known->second.size() - 1)];
  return bytes_->ConsumeRandomLengthString(kMostRandomBytes);
}

double RequestMaker::Number(const std::string& name) {
  constexpr double kNumbers[] = {0,
                                 1e-3,
                                 1,
                                 5,
                                 30,
                                 -1,
                                 1e300,
                                 std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
  // A call that waits has a time to wait.
  const size_t most = name == "wait_seconds" ? 4 : std::size(kNumbers) - 1;
  return kNumbers[bytes_->ConsumeIntegralInRange<size_t>(0, most)];
}

const GivenLease& RequestMaker::AnyLease() {
  return leases[bytes_->ConsumeIntegralInRange<size_t>(0, leases.size() - 1)];
}

void RequestMaker::FillReport(const GivenLease& given, v1::Report* report) {
  *report->mutable_lease() = given.assignment.lease();
  std::vector<v1::MeasureResult> results = FakeResults(given.assignment);
  if (OneIn(4)) {
    results[0].set_status(
        static_cast<v1::MeasureStatus>(bytes_->ConsumeIntegralInRange<int>(0, v1::MeasureStatus_MAX)));
    results[0].set_error("as the fuzzer says");
  }
  *report->mutable_result() = results[0];
  for (size_t i = 1; i < results.size(); ++i) *report->add_rivals() = results[i];
}

void RequestMaker::FillRegistration(v1::RegisterRequest* request) {
  request->set_worker(Text("worker"));
  request->set_instance(Text("instance"));
  request->set_replaces(Text("replaces"));
  request->set_names_what_it_holds(!OneIn(8));
  v1::DeviceOffer& device = *request->add_devices();
  device.set_device("cpu");
  device.set_target(kTestTarget);
  if (OneIn(4)) {
    request->set_role(
        static_cast<v1::WorkerRole>(bytes_->ConsumeIntegralInRange<int>(0, v1::WorkerRole_MAX)));
    request->add_build_targets("v1 cuda sm=90a sms=132");
    request->set_builders(2);
  }
  const auto most = static_cast<int>(std::min<size_t>(leases.size(), kMostEntries));
  for (int i = bytes_->ConsumeIntegralInRange<int>(0, most); i > 0; --i)
    *request->add_held() = AnyLease().assignment.lease();
}

// Any call of a worker that has registered: its fields are known by their names.
bool RequestMaker::FillInSession(Message* message) {
  const auto& descriptor = *message->GetDescriptor();
  const auto& reflection = *message->GetReflection();
  const FieldDescriptor* const session = descriptor.FindFieldByName("session");
  if (session == nullptr || sessions.empty()) return false;
  std::string own = sessions[bytes_->ConsumeIntegralInRange<size_t>(0, sessions.size() - 1)];
  const FieldDescriptor* const reports = descriptor.FindFieldByName("reports");
  const bool is_report = reports != nullptr && reports->message_type()->name() == "Report" && !leases.empty();
  if (is_report) {
    const GivenLease& given = AnyLease();
    if (!OneIn(8)) own = given.session;
    FillReport(given, static_cast<v1::Report*>(reflection.AddMessage(message, reports)));
  }
  const FieldDescriptor* const held = descriptor.FindFieldByName("held");
  for (const GivenLease& given : leases) {
    if (held != nullptr && given.session == own && !OneIn(8))
      reflection.AddMessage(message, held)->CopyFrom(given.assignment.lease());
  }
  reflection.SetString(message, session, own);
  if (const auto* const device = descriptor.FindFieldByName("device"); device != nullptr)
    reflection.SetString(message, device, "cpu");
  for (const char* const count : {"max_trials", "max_orders"}) {
    if (const auto* const field = descriptor.FindFieldByName(count); field != nullptr)
      reflection.SetUInt32(message, field, bytes_->ConsumeIntegralInRange<uint32_t>(1, 4));
  }
  if (const auto* const wait = descriptor.FindFieldByName("wait_seconds"); wait != nullptr)
    reflection.SetDouble(message, wait, Number("wait_seconds"));
  return true;
}

bool RequestMaker::FillSound(Message* message) {
  const std::string& name = message->GetDescriptor()->name();
  if (name == "RegisterRequest") {
    FillRegistration(static_cast<v1::RegisterRequest*>(message));
    return true;
  }
  if (name == "LeaseId" || name == "Report") {
    if (leases.empty()) return false;
    if (name == "Report") {
      FillReport(AnyLease(), static_cast<v1::Report*>(message));
    } else {
      message->CopyFrom(AnyLease().assignment.lease());
    }
    return true;
  }
  if (name != "JobSpec") return FillInSession(message);
  const uint32_t trials = bytes_->ConsumeIntegralInRange<uint32_t>(1, 8);
  const bool both = bytes_->ConsumeBool();
  *static_cast<v1::JobSpec*>(message) =
      MakeSpec(both ? std::vector<std::string>{kTestWorkload, kOtherWorkload}
                    : std::vector<std::string>{kTestWorkload},
               trials, bytes_->ConsumeIntegralInRange<uint64_t>(0, 2));
  return true;
}

void RequestMaker::FillField(Message* message, const FieldDescriptor* field, int depth) {
  const auto& reflection = *message->GetReflection();
  const int count = field->is_repeated() ? bytes_->ConsumeIntegralInRange<int>(0, kMostEntries) : 1;
  for (int i = 0; i < count; ++i) {
    const bool many = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string text = Text(field->name());
        many ? reflection.AddString(message, field, std::move(text))
             : reflection.SetString(message, field, std::move(text));
        break;
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const double number = Number(field->name());
        many ? reflection.AddDouble(message, field, number) : reflection.SetDouble(message, field, number);
        break;
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool flag = bytes_->ConsumeBool();
        many ? reflection.AddBool(message, field, flag) : reflection.SetBool(message, field, flag);
        break;
      }
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto number = bytes_->ConsumeIntegral<int32_t>();
        many ? reflection.AddInt32(message, field, number) : reflection.SetInt32(message, field, number);
        break;
      }
      case FieldDescriptor::CPPTYPE_INT64: {
        const auto number = bytes_->ConsumeIntegral<int64_t>();
        many ? reflection.AddInt64(message, field, number) : reflection.SetInt64(message, field, number);
        break;
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const uint32_t number =
            OneIn(4) ? bytes_->ConsumeIntegral<uint32_t>() : bytes_->ConsumeIntegralInRange<uint32_t>(0, 8);
        many ? reflection.AddUInt32(message, field, number) : reflection.SetUInt32(message, field, number);
        break;
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const auto number = bytes_->ConsumeIntegral<uint64_t>();
        many ? reflection.AddUInt64(message, field, number) : reflection.SetUInt64(message, field, number);
        break;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int number = bytes_->ConsumeIntegralInRange<int>(0, 12);
        many ? reflection.AddEnumValue(message, field, number)
             : reflection.SetEnumValue(message, field, number);
        break;
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        FillAt(many ? reflection.AddMessage(message, field) : reflection.MutableMessage(message, field),
               depth + 1);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT: break;  // the protocol has none
    }
  }
}

void RequestMaker::FillAt(Message* message, int depth) {
  const bool is_sound = !OneIn(8) && FillSound(message);
  // A sound message is left as it is, or has one field or another changed.
  if (is_sound && !OneIn(4)) return;
  if (depth > kMostDepth) return;
  const auto& descriptor = *message->GetDescriptor();
  for (int i = 0; i < descriptor.field_count() && bytes_->remaining_bytes() > 0; ++i) {
    const bool is_name =
        KnownTexts().contains(descriptor.field(i)->name()) || descriptor.field(i)->name() == "session";
    const bool is_wanted =
        is_sound ? OneIn(8) : is_name || descriptor.field(i)->name() == "max_trials" || !OneIn(3);
    if (is_wanted) FillField(message, descriptor.field(i), depth);
  }
}

}  // namespace mycc
