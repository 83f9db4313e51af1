// The leases that a worker holds, with their tickets, and the results that the server has not answered yet.
// Thread rule: thread-compatible.
//
//   Take --> to be measured --> Finish: a result waits --> its report is answered: forgotten
//                |  revoked           |                         `-- not now, or no answer: it waits on
//                `--> not begun       `--> reported all the same: the log keeps what was paid for
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/worker.pb.h"

namespace mycc {

class Holdings {
 public:
  using Leases = google::protobuf::RepeatedPtrField<v1::LeaseId>;

  // A lease that was granted.
  void Take(const v1::LeaseId& lease);
  // The server takes these back. Leases that are not held do not matter.
  void Revoke(const Leases& leases);
  // Whether the lease stands, as far as this worker knows.
  bool IsWanted(const v1::LeaseId& lease) const;
  // It was measured: its report waits. A result that cannot be sent becomes one that says so.
  void Finish(v1::Report report);
  // It will not be measured, unless it has been: it is named no more.
  void Drop(const v1::LeaseId& lease);

  // All that is held, for a message to name.
  void Name(Leases* held) const;

  size_t num_results() const { return results_.size(); }
  // Adds the reports whose turn it is: after a call that failed fewer at once and others first, so that
  // results that no message can carry hold up no others.
  void AddReports(v1::ReportRequest* request) const;
  // The call with these reports failed, whatever its code.
  void OnFailure(const v1::ReportRequest& request);
  // The server answered: reports that are kept, ignored or refused are forgotten, and the refusals are added
  // to `refusals`. Unavailable, with a reason, when others have to be reported again.
  absl::Status OnAnswers(const v1::ReportRequest& request, const v1::ReportResponse& response,
                         std::vector<v1::ReportAnswer>* refusals);

 private:
  using Key = std::pair<std::string, uint32_t>;  // trial, attempt
  struct Holding {
    v1::LeaseId lease;
    bool is_revoked = false;
    bool is_measured = false;
  };
  static constexpr size_t kMostAtOnce = 256;

  static Key KeyOf(const v1::LeaseId& lease) { return {lease.trial(), lease.attempt()}; }
  static std::set<Key> KeysOf(const v1::ReportRequest& request);
  // These are reported again when the others have been.
  void PutLast(const std::set<Key>& keys);

  std::map<Key, Holding> held_;
  std::vector<v1::Report> results_;  // the next ones first
  size_t at_once_ = kMostAtOnce;     // reports in a message
};

}  // namespace mycc
