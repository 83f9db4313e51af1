// Faults of pipelines: a synchronization between roles, copies or thread blocks is missing, too early, or for
// another slot.
#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/ir/cluster.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "tests/perf/planted/edit.h"

namespace mycc::planted {
namespace {

Expr IsAtLeast(const Expr& value, int64_t least) { return MakeBinary(Op::kLe, IntConst(least), value); }

const Roles* RolesAround(const Place& place) {
  for (const Stmt& stmt : place.around) {
    if (const Roles* roles = DynAs<Roles>(stmt)) return roles;
  }
  return nullptr;
}

// The next barrier; after the last comes the first.
Expr NextBarrier(const Place& place, const Expr& barrier) {
  return Simplify(Mod(barrier + 1, static_cast<int64_t>(RolesAround(place)->barrier_counts.size())));
}

// Waits for a phase that is not complete from the start.
std::vector<Place> RealWaits(const Kernel& kernel) {
  std::vector<Place> waits = PlacesOf(kernel, StmtKind::kWait);
  std::erase_if(waits, [&](const Place& place) {
    return !IsReached(kernel, place.stmt, IsAtLeast(As<Wait>(place.stmt).phase, 0));
  });
  return waits;
}

std::vector<Fault> WaitsLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : RealWaits(kernel)) faults.push_back(FaultAt(kernel, place.stmt, nullptr));
  return faults;
}

std::vector<Fault> WaitsWith(const Kernel& kernel,
                             const std::function<Stmt(const Place&, const Wait&)>& other) {
  std::vector<Fault> faults;
  for (const Place& place : RealWaits(kernel))
    faults.push_back(FaultAt(kernel, place.stmt, other(place, As<Wait>(place.stmt))));
  return faults;
}
std::vector<Fault> WaitsForThePhaseBefore(const Kernel& kernel) {
  return WaitsWith(kernel, [](const Place&, const Wait& wait) {
    return std::make_shared<Wait>(wait.barrier, wait.phase - 1);
  });
}
std::vector<Fault> WaitsForThePhaseAfter(const Kernel& kernel) {
  return WaitsWith(kernel, [](const Place&, const Wait& wait) {
    return std::make_shared<Wait>(wait.barrier, wait.phase + 1);
  });
}
std::vector<Fault> WaitsAtAnotherBarrier(const Kernel& kernel) {
  return WaitsWith(kernel, [](const Place& place, const Wait& wait) {
    return std::make_shared<Wait>(NextBarrier(place, wait.barrier), wait.phase);
  });
}

// Whether the role may come to the place again. An arrival elsewhere, after the last turn, is nobody's to
// wait for.
bool IsRepeated(const Place& place) {
  return std::ranges::any_of(place.around, [](const Stmt& stmt) {
    const For* loop = DynAs<For>(stmt);
    return loop != nullptr && loop->loop_kind == LoopKind::kSerial;
  });
}

// Two statements of a sequence change places: `first` and what comes after it.
std::vector<Fault> Exchanged(
    const Kernel& kernel, const std::function<bool(const Stmt&, const Stmt&)>& wanted,
    bool (*at)(const Place& place) = [](const Place&) { return true; }) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kSeq)) {
    if (!at(place)) continue;
    std::vector<Stmt> stmts = As<Seq>(place.stmt).stmts;
    for (size_t i = 0; i + 1 < stmts.size(); ++i) {
      if (!wanted(stmts[i], stmts[i + 1]) || !IsReached(kernel, stmts[i + 1])) continue;
      std::vector<Stmt> exchanged = stmts;
      std::swap(exchanged[i], exchanged[i + 1]);
      Fault fault = FaultAt(kernel, place.stmt, std::make_shared<Seq>(exchanged));
      fault.place = StmtName(stmts[i + 1]);
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

bool Works(const Stmt& stmt) {
  return Contains(stmt, StmtKind::kMma) || Contains(stmt, StmtKind::kCopy) ||
         Contains(stmt, StmtKind::kStore);
}

// A lone arrival, perhaps under a condition. One that expects bytes may come before the copies of them.
bool IsRelease(const Stmt& stmt) {
  bool arrives = false, expects = false;
  VisitStmts(stmt, [&](const Stmt& s) {
    const Arrive* arrive = DynAs<Arrive>(s);
    arrives |= arrive != nullptr;
    expects |= arrive != nullptr && arrive->expected_bytes > 0;
    return true;
  });
  return arrives && !expects && !Works(stmt);
}
std::vector<Fault> EarlyArrivals(const Kernel& kernel) {
  const auto wanted = [](const Stmt& stmt, const Stmt& next) {
    return IsRelease(next) && (Works(stmt) || stmt->kind == StmtKind::kWaitProducts);
  };
  return Exchanged(kernel, wanted, IsRepeated);
}
std::vector<Fault> LateWaits(const Kernel& kernel) {
  return Exchanged(kernel, [](const Stmt& stmt, const Stmt& next) {
    return stmt->kind == StmtKind::kWait && Works(next);
  });
}

std::vector<Fault> ArrivalsWith(const Kernel& kernel,
                                const std::function<Stmt(const Place&, const Arrive&)>& other) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kArrive)) {
    if (!IsRepeated(place)) continue;
    const Stmt by = other(place, As<Arrive>(place.stmt));
    if (by != place.stmt && IsReached(kernel, place.stmt)) faults.push_back(FaultAt(kernel, place.stmt, by));
  }
  return faults;
}
std::vector<Fault> ArrivalsLeftOut(const Kernel& kernel) {
  return ArrivalsWith(kernel, [](const Place&, const Arrive&) { return nullptr; });
}
std::vector<Fault> ArrivalsTwice(const Kernel& kernel) {
  return ArrivalsWith(kernel, [](const Place& place, const Arrive&) {
    return MakeSeq({place.stmt, place.stmt});
  });
}
std::vector<Fault> ArrivalsAtAnotherBarrier(const Kernel& kernel) {
  return ArrivalsWith(kernel, [](const Place& place, const Arrive& arrive) {
    return std::make_shared<Arrive>(NextBarrier(place, arrive.barrier), arrive.cluster, arrive.arrivals,
                                    arrive.expected_bytes);
  });
}
std::vector<Fault> ArrivalsAtOneBlockAlone(const Kernel& kernel) {
  return ArrivalsWith(kernel, [](const Place& place, const Arrive& arrive) {
    return arrive.cluster ? std::make_shared<Arrive>(arrive.barrier, nullptr, arrive.arrivals) : place.stmt;
  });
}
std::vector<Fault> ArrivalsOfAWarpgroupLeftOut(const Kernel& kernel) {
  return ArrivalsWith(kernel, [](const Place& place, const Arrive& arrive) {
    return arrive.arrivals > 1 ? std::make_shared<Arrive>(arrive.barrier, arrive.cluster, arrive.arrivals - 1)
                               : place.stmt;
  });
}
std::vector<Fault> ArrivalsThatExpectTooFewBytes(const Kernel& kernel) {
  return ArrivalsWith(kernel, [](const Place& place, const Arrive& arrive) {
    return arrive.expected_bytes > 0 ? std::make_shared<Arrive>(arrive.barrier, arrive.cluster,
                                                                arrive.arrivals, arrive.expected_bytes / 2)
                                     : place.stmt;
  });
}

// Whether somebody waits for a phase of the barrier that others have to complete.
bool IsWaitedFor(const Kernel& kernel, int64_t barrier) {
  const std::vector<Place> waits = PlacesOf(kernel, StmtKind::kWait);
  return std::ranges::any_of(waits, [&](const Place& place) {
    const Wait& wait = As<Wait>(place.stmt);
    const Expr is_this = MakeBinary(Op::kEq, wait.barrier, IntConst(barrier));
    return IsReached(kernel, place.stmt, MakeBinary(Op::kAnd, is_this, IsAtLeast(wait.phase, 0)));
  });
}

std::vector<Fault> CountsOffBy(const Kernel& kernel, int by) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kRoles)) {
    const Roles& roles = As<Roles>(place.stmt);
    for (size_t b = 0; b < roles.barrier_counts.size(); ++b) {
      std::vector<int> counts = roles.barrier_counts;
      if ((counts[b] += by) < 1 || !IsWaitedFor(kernel, static_cast<int64_t>(b))) continue;
      faults.push_back(FaultAt(kernel, place.stmt, std::make_shared<Roles>(roles.roles, counts)));
      faults.back().place = "barrier " + std::to_string(b);
    }
  }
  return faults;
}
std::vector<Fault> CountsTooHigh(const Kernel& kernel) { return CountsOffBy(kernel, 1); }
std::vector<Fault> CountsTooLow(const Kernel& kernel) { return CountsOffBy(kernel, -1); }

std::vector<Fault> LeftOut(const Kernel& kernel, StmtKind kind) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, kind)) {
    if (IsReached(kernel, place.stmt)) faults.push_back(FaultAt(kernel, place.stmt, nullptr));
  }
  return faults;
}
std::vector<Fault> FencesLeftOut(const Kernel& kernel) { return LeftOut(kernel, StmtKind::kFence); }
std::vector<Fault> SignalsLeftOut(const Kernel& kernel) { return LeftOut(kernel, StmtKind::kSignal); }
std::vector<Fault> ProductWaitsLeftOut(const Kernel& kernel) {
  return LeftOut(kernel, StmtKind::kWaitProducts);
}
std::vector<Fault> ProductCommitsLeftOut(const Kernel& kernel) {
  return LeftOut(kernel, StmtKind::kCommitProducts);
}
std::vector<Fault> ProductWaitsForOneTooFew(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kWaitProducts)) {
    const int pending = As<WaitProducts>(place.stmt).pending + 1;
    if (IsReached(kernel, place.stmt))
      faults.push_back(FaultAt(kernel, place.stmt, std::make_shared<WaitProducts>(pending)));
  }
  return faults;
}
std::vector<Fault> AwaitsLeftOut(const Kernel& kernel) { return LeftOut(kernel, StmtKind::kAwait); }

// Groups of copies: those in a loop whose iterations go on copying.
std::vector<Place> GroupsInLoops(const Kernel& kernel, StmtKind kind) {
  return PlacesOf(kernel, [kind](const Place& place) {
    if (place.stmt->kind != kind) return false;
    for (size_t i = place.around.size(); i-- > 0;) {
      const For* loop = DynAs<For>(place.around[i]);
      if (loop != nullptr)
        return loop->loop_kind == LoopKind::kSerial && Contains(loop->body, StmtKind::kCopy);
    }
    return false;
  });
}
std::vector<Fault> GroupsWith(const Kernel& kernel, StmtKind kind,
                              const std::function<Stmt(const Stmt&)>& other) {
  std::vector<Fault> faults;
  for (const Place& place : GroupsInLoops(kernel, kind))
    faults.push_back(FaultAt(kernel, place.stmt, other(place.stmt)));
  return faults;
}
std::vector<Fault> GroupWaitsLeftOut(const Kernel& kernel) {
  return GroupsWith(kernel, StmtKind::kWaitGroup, [](const Stmt&) { return nullptr; });
}
std::vector<Fault> GroupWaitsForOneTooFew(const Kernel& kernel) {
  return GroupsWith(kernel, StmtKind::kWaitGroup, [](const Stmt& stmt) {
    return std::make_shared<WaitGroup>(As<WaitGroup>(stmt).pending + 1);
  });
}
std::vector<Fault> CommitsLeftOut(const Kernel& kernel) {
  return GroupsWith(kernel, StmtKind::kCommitGroup, [](const Stmt&) { return nullptr; });
}
std::vector<Fault> GroupWaitsAfterTheCopies(const Kernel& kernel) {
  return Exchanged(kernel, [](const Stmt& stmt, const Stmt& next) {
    return stmt->kind == StmtKind::kWaitGroup && Contains(next, StmtKind::kCopy);
  });
}

std::vector<Fault> CopiesWith(const Kernel& kernel,
                              const std::function<Stmt(const Place&, const Copy&)>& other) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kCopy)) {
    const Stmt by = other(place, As<Copy>(place.stmt));
    if (by != place.stmt && IsReached(kernel, As<Copy>(place.stmt).body))
      faults.push_back(FaultAt(kernel, place.stmt, by));
  }
  return faults;
}
std::vector<Fault> CopiesLeftOut(const Kernel& kernel) {
  return CopiesWith(kernel, [](const Place&, const Copy&) { return nullptr; });
}
std::vector<Fault> CopiesThatSignalNothing(const Kernel& kernel) {
  return CopiesWith(kernel, [](const Place& place, const Copy& copy) {
    return copy.barrier ? std::make_shared<Copy>(copy.body, copy.engine) : place.stmt;
  });
}
std::vector<Fault> CopiesThatSignalAnotherSlot(const Kernel& kernel) {
  return CopiesWith(kernel, [](const Place& place, const Copy& copy) {
    return copy.barrier ? std::make_shared<Copy>(copy.body, copy.engine, NextBarrier(place, copy.barrier),
                                                 copy.cluster)
                        : place.stmt;
  });
}
std::vector<Fault> MulticastsToOneBlock(const Kernel& kernel) {
  return CopiesWith(kernel, [](const Place& place, const Copy& copy) -> Stmt {
    if (!copy.cluster) return place.stmt;
    const Stmt part = PartOfMulticast(copy.body, copy.cluster, copy.cluster->var->extent);
    return std::make_shared<Copy>(part, copy.engine, copy.barrier);
  });
}

// The kernels' tiles have two dimensions.
bool IsRing(const Buffer& buffer) {
  return buffer->scope == Scope::kShared && buffer->rank() == 3 && buffer->shape[0] > 1;
}
std::vector<Expr> NextSlot(const Buffer& ring, std::vector<Expr> indices) {
  indices[0] = Simplify(Mod(indices[0] + 1, ring->shape[0]));
  return indices;
}

// Tile products read the slot after the one that is full.
std::vector<Fault> ReadsOfAnotherSlot(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kMma)) {
    const Mma& mma = As<Mma>(place.stmt);
    for (TileView Mma::*const view : {&Mma::a, &Mma::b}) {
      if (!IsRing((mma.*view).buffer)) continue;
      auto changed = std::make_shared<Mma>(mma);
      ((*changed).*view).indices = NextSlot((mma.*view).buffer, (mma.*view).indices);
      faults.push_back(FaultAt(kernel, place.stmt, changed));
    }
  }
  return faults;
}
std::vector<Fault> CopiesIntoAnotherSlot(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kStore)) {
    const Store& store = As<Store>(place.stmt);
    if (!IsRing(store.buffer) || !place.Within(StmtKind::kCopy) || !IsReached(kernel, place.stmt)) continue;
    faults.push_back(
        FaultAt(kernel, place.stmt,
                std::make_shared<Store>(store.buffer, NextSlot(store.buffer, store.indices), store.value)));
  }
  return faults;
}

std::vector<Fault> SignalsForAnother(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kSignal)) {
    const Signal& signal = As<Signal>(place.stmt);
    const Expr other = Simplify(Mod(signal.index + 1, signal.flags->shape[0]));
    if (IsReached(kernel, place.stmt))
      faults.push_back(FaultAt(kernel, place.stmt, std::make_shared<Signal>(signal.flags, other)));
  }
  return faults;
}

}  // namespace

const std::vector<FaultClass>& PipelineFaults() {
  static const auto& classes = *new std::vector<FaultClass>{
      {"a wait is left out", WaitsLeftOut},
      {"a wait is for the phase before", WaitsForThePhaseBefore},
      {"a wait is for the phase after", WaitsForThePhaseAfter},
      {"a wait is at another barrier", WaitsAtAnotherBarrier},
      {"a wait comes after the work", LateWaits},
      {"an arrival is left out", ArrivalsLeftOut},
      {"an arrival comes twice", ArrivalsTwice},
      {"an arrival comes before the work", EarlyArrivals},
      {"an arrival is at another barrier", ArrivalsAtAnotherBarrier},
      {"an arrival is at one block of a cluster alone", ArrivalsAtOneBlockAlone},
      {"an arrival of a warpgroup is left out", ArrivalsOfAWarpgroupLeftOut},
      {"an arrival expects too few bytes", ArrivalsThatExpectTooFewBytes},
      {"a wait for products is left out", ProductWaitsLeftOut},
      {"a wait for products leaves one too many", ProductWaitsForOneTooFew},
      {"a group of products is not closed", ProductCommitsLeftOut},
      {"a barrier counts one too many", CountsTooHigh},
      {"a barrier counts one too few", CountsTooLow},
      {"a fence is left out", FencesLeftOut},
      {"a copy is left out", CopiesLeftOut},
      {"a copy signals nothing", CopiesThatSignalNothing},
      {"a copy signals another slot", CopiesThatSignalAnotherSlot},
      {"a copy goes to another slot", CopiesIntoAnotherSlot},
      {"a multicast goes to one block", MulticastsToOneBlock},
      {"a tile is read from another slot", ReadsOfAnotherSlot},
      {"a wait for a group is left out", GroupWaitsLeftOut},
      {"a wait for a group leaves one too many", GroupWaitsForOneTooFew},
      {"a wait for a group comes after the next copies", GroupWaitsAfterTheCopies},
      {"a group is not closed", CommitsLeftOut},
      {"a signal between blocks is left out", SignalsLeftOut},
      {"a signal between blocks is for another", SignalsForAnother},
      {"blocks do not await each other", AwaitsLeftOut},
  };
  return classes;
}

}  // namespace mycc::planted
