#include "worker/holdings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

// Strings of a message must be valid UTF-8, or the message cannot be parsed.
bool CanBeSent(const v1::Report& report) {
  v1::Report read;
  return read.ParseFromString(report.SerializeAsString());
}

// The report in place of a result that cannot be sent: that is not the candidate's failure.
v1::Report Unsendable(const v1::Report& report) {
  v1::Report unfit;
  *unfit.mutable_lease() = report.lease();
  unfit.mutable_result()->set_status(v1::MEASURE_STATUS_WORKER_UNFIT);
  unfit.mutable_result()->set_error("its result is damaged: it holds a string that is not UTF-8");
  unfit.mutable_result()->mutable_timing()->set_protocol(report.result().timing().protocol());
  return unfit;
}

}  // namespace

void Holdings::Take(const v1::LeaseId& lease) { held_[KeyOf(lease)] = {.lease = lease}; }

void Holdings::Revoke(const Leases& leases) {
  for (const v1::LeaseId& lease : leases) {
    const auto found = held_.find(KeyOf(lease));
    if (found != held_.end()) found->second.is_revoked = true;
  }
}

bool Holdings::IsWanted(const v1::LeaseId& lease) const {
  const auto found = held_.find(KeyOf(lease));
  return found != held_.end() && !found->second.is_revoked;
}

void Holdings::Finish(v1::Report report) {
  const auto found = held_.find(KeyOf(report.lease()));
  if (found != held_.end()) found->second.is_measured = true;
  results_.push_back(CanBeSent(report) ? std::move(report) : Unsendable(report));
}

void Holdings::Drop(const v1::LeaseId& lease) {
  const auto found = held_.find(KeyOf(lease));
  if (found != held_.end() && !found->second.is_measured) held_.erase(found);
}

void Holdings::Name(Leases* held) const {
  for (const auto& [key, holding] : held_) {
    if (!holding.is_revoked) *held->Add() = holding.lease;
  }
}

void Holdings::AddReports(v1::ReportRequest* request) const {
  for (size_t i = 0; i < std::min(at_once_, results_.size()); ++i) *request->add_reports() = results_[i];
}

void Holdings::OnFailure(const v1::ReportRequest& request) {
  at_once_ = std::max<size_t>(1, static_cast<size_t>(request.reports_size()) / 2);
  PutLast(KeysOf(request));
}

absl::Status Holdings::OnAnswers(const v1::ReportRequest& request, const v1::ReportResponse& response,
                                 std::vector<v1::ReportAnswer>* refusals) {
  at_once_ = std::min(kMostAtOnce, 2 * at_once_);
  std::set<Key> open = KeysOf(request), ended;
  std::string why = "the server did not answer for them";
  for (const v1::ReportAnswer& answer : response.answers()) {
    const Key key = KeyOf(answer.lease());
    if (!open.contains(key)) continue;
    switch (answer.kind()) {
      case v1::ReportAnswer::REFUSED: refusals->push_back(answer); [[fallthrough]];
      case v1::ReportAnswer::KEPT:
      case v1::ReportAnswer::IGNORED: open.erase(key), ended.insert(key); break;
      default: why = answer.reason();
    }
  }
  std::erase_if(results_, [&](const v1::Report& report) { return ended.contains(KeyOf(report.lease())); });
  for (const Key& key : ended) held_.erase(key);
  if (open.empty()) return absl::OkStatus();
  PutLast(open);
  return absl::UnavailableError(absl::StrCat("results cannot be kept now: ", why));
}

std::set<Holdings::Key> Holdings::KeysOf(const v1::ReportRequest& request) {
  std::set<Key> keys;
  for (const v1::Report& report : request.reports()) keys.insert(KeyOf(report.lease()));
  return keys;
}

void Holdings::PutLast(const std::set<Key>& keys) {
  std::stable_partition(results_.begin(), results_.end(),
                        [&](const v1::Report& report) { return !keys.contains(KeyOf(report.lease())); });
}

}  // namespace mycc
