// The urgency of jobs that leave work to each other: it says which may wait for which. Pure functions.
#pragma once

#include "server/job_terms.h"
#include "server/owners.h"

namespace mycc {

// Jobs of equal urgency may wait for each other, and none may wait for one that is less urgent. Trials that a
// quota holds back come last, and before them those that run only when the farm is idle.
inline int UrgencyOf(const JobTerms& terms, const Owners& owners) {
  if (!owners.HeldBack(terms.owner).empty()) return -kMostPriority - 2;
  return terms.only_when_idle ? -kMostPriority - 1 : terms.priority;
}

}  // namespace mycc
