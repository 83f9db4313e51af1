// Makes pipelines for the copy engine: one role copies and another computes (warp specialization), as
// published for Hopper (CUTLASS, FlashAttention-3, fast.cu):
//
//   block b in T over P:               block c in P:
//     alloc acc                          alloc ring of s
//     acc = 0                            roles:
//     for k pipelined in s:      ->        copy:    for i: for k: wait empty; copy slot = ..; arrive full
//       alloc s: s = x[..]                 compute: for i: acc = 0
//       mma acc += s                                         for k: wait full; mma acc += slot; arrive empty
//     y[..] = acc                                            y[..] = acc
//
// A slot is full after the copying thread has arrived, and the bytes that it expects have come from all
// blocks of its cluster. It is empty after all these blocks have arrived. A role that multiplies by
// warpgroups arrives once for each of them, because each waits for its own products. Where threads read the
// slot themselves, a barrier comes first.
//
// Both roles are made by one class, because their barriers and slots must agree. Its parts have files of
// their own, where their pictures are:
//
//   ring_sets     the tiles of the ring, their barriers, and those that the blocks of a cluster share
//   block_work    the tiles of results that a block takes, and the numbers of its steps
//   block_tiles   other tiles that the copying role fetches, such as queries
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/block_tiles.h"
#include "codegen/passes/block_work.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/pipeline_loops.h"
#include "codegen/passes/ring_sets.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// The body without the Allocs of tiles in shared memory outside of the ring, which are added to `shared`.
Stmt WithoutSharedAllocs(const Stmt& body, const std::vector<Buffer>& ring_tiles,
                         std::vector<Buffer>* shared) {
  return RewriteEach<Alloc>(body, [&](const Alloc& alloc) -> Stmt {
    if (alloc.buffer->scope != Scope::kShared || std::ranges::count(ring_tiles, alloc.buffer) > 0)
      return nullptr;
    shared->push_back(alloc.buffer);
    return alloc.body;
  });
}

Stmt InFirstStep(const For& loop, Stmt stmt) {
  return std::make_shared<If>(MakeBinary(Op::kLt, VarRef(loop.var), IntConst(1)), std::move(stmt));
}

Stmt InLastStep(const For& loop, Stmt stmt) {
  if (!stmt) return nullptr;
  return std::make_shared<If>(MakeBinary(Op::kLe, loop.extent, VarRef(loop.var) + 1), std::move(stmt));
}

// Stores tiles of results in shared memory by the copy engine:
//
//   nest: s = acc                  wait for all bulk stores; nest: s = acc
//   nest: y[..] = s           ->   fence; copy y[..] = s in bulk; commit
//
// `tiles` are written by the role whose code `body` is. A tile is written again after the copy engine has
// read it. The same pointer when nothing is stored in this way; otherwise the role has to wait at its end.
Stmt StoreInBulk(const Stmt& body, const std::vector<Buffer>& tiles) {
  return RewriteEach<Seq>(body, [&](const Seq& seq) -> Stmt {
    std::vector<Stmt> parts;
    for (const Stmt& part : seq.stmts) {
      const Store* store = IsLoopOfKind(part, LoopKind::kSerial) ? StoreOf(part) : nullptr;
      if (store != nullptr && std::ranges::count(tiles, store->buffer) > 0)
        parts.push_back(std::make_shared<WaitGroup>(0));
      const bool leaves = store != nullptr && store->value->op == Op::kLoad &&
                          std::ranges::count(tiles, store->value->buffer) > 0;
      if (leaves && BulkBoxOf(part).ok()) {
        parts.insert(parts.end(), {std::make_shared<Fence>(), std::make_shared<Copy>(part, CopyEngine::kBulk),
                                   std::make_shared<CommitGroup>()});
      } else {
        parts.push_back(part);
      }
    }
    return parts.size() == seq.stmts.size() ? nullptr : MakeSeq(parts);
  });
}

class BulkPipeline {
 public:
  // `shared` are the tiles in shared memory outside of the ring, and `fetched` those of them that the copying
  // role fills. `cluster` is the variable of the loop over a cluster's blocks; null without one.
  BulkPipeline(const LoopParts& parts, int slots, BlockWork block, std::vector<Buffer> shared,
               BlockTiles fetched, Var cluster, int warpgroups)
      : rings_(parts.tiles, slots),
        sets_(parts, slots),
        block_(std::move(block)),
        cluster_(std::move(cluster)),
        warpgroups_(std::max(warpgroups, 1)),
        slot_(Simplify(Mod(block_.number, slots))),
        turn_(Simplify(FloorDiv(block_.number, slots))),
        shared_(std::move(shared)),
        fetched_(std::move(fetched)) {}

  Stmt Build() {
    std::vector<int> arrivals = Barriers();
    std::vector<Roles::Role> roles = {{"copy", CopyWithSuffix(WithCounter(OnlyCopies(work())), ".copy")}};
    for (int group = 0; group < block_.groups; ++group) roles.push_back(Computer(group));
    return InBlocks(std::make_shared<Roles>(std::move(roles), std::move(arrivals)));
  }

 private:
  const Stmt& work() const { return block_.of_block.work; }
  bool IsTheLoop(const Stmt& stmt) const { return IsLoopOver(stmt, block_.of_block.ring); }
  Expr Cluster() const { return cluster_ ? VarRef(cluster_) : nullptr; }

  // The roles inside the Allocs of shared memory and the loops over blocks.
  Stmt InBlocks(Stmt roles) const {
    Stmt result = InAllocs(shared_, InAllocs(of_groups_, rings_.Around(std::move(roles))));
    for (auto it = block_.grid.rbegin(); it != block_.grid.rend(); ++it)
      result = (*it)
                   ->With({.body = std::move(result)})
                   ->Marked({.multicast_cluster = (*it)->marks.multicast_cluster});
    return block_.partial ? block_.partial->Around(std::move(result)) : result;
  }

  Stmt WithCounter(Stmt role) const {
    return block_.counter ? block_.counter->Around(std::move(role)) : role;
  }
  // The loop over the steps of the ring, in one of the roles.
  Stmt StepsOf(const For& loop, std::vector<Stmt> step) const {
    Stmt steps = std::make_shared<For>(loop.var, loop.extent, LoopKind::kSerial, MakeSeq(std::move(step)));
    return block_.counter ? block_.counter->Counting(std::move(steps), loop.extent) : steps;
  }

  // -- Barriers. --

  // The arrivals that complete a phase of each barrier: of slots that are full and empty, of groups in their
  // turns, and of the block's other tiles.
  std::vector<int> Barriers() {
    const int blocks_of_cluster = cluster_ ? static_cast<int>(cluster_->extent) : 1;
    std::vector<int> arrivals = sets_.Arrivals(blocks_of_cluster * warpgroups_);
    first_turn_barrier_ = static_cast<int64_t>(arrivals.size());
    if (block_.groups > 1) arrivals.insert(arrivals.end(), block_.groups, warpgroups_);
    const std::vector<int> of_tiles = fetched_.SetBarriers(
        static_cast<int64_t>(arrivals.size()), block_.round ? VarRef(block_.round) : nullptr, warpgroups_);
    arrivals.insert(arrivals.end(), of_tiles.begin(), of_tiles.end());
    return arrivals;
  }

  Expr Full(size_t set) const { return sets_.Full(set, slot_); }
  Expr Empty(size_t set) const { return sets_.Empty(set, slot_); }

  // The arrival of a role that computes.
  Stmt ArriveAt(const Expr& barrier, const Expr& cluster) const {
    return MakeSeq({sets_.ThreadsRead() ? std::make_shared<Barrier>() : nullptr,
                    std::make_shared<Arrive>(barrier, cluster, warpgroups_)});
  }

  // Whether the block's other tiles are fetched after the first set's first slot, which is needed as early
  // and free earlier, and released after the last step's product. Otherwise they are fetched before the ring,
  // and released after it.
  bool FetchesInStep() const {
    if (fetched_.empty() || sets_.count() < 2 || !fetched_.HaveOneReader()) return false;
    const For* ring = FirstOf<For>(work(), [&](const For& loop) { return loop.var == block_.of_block.ring; });
    const auto steps = RangeOf(ring->extent);
    return steps && steps->min >= 1;
  }

  // -- The role that copies. --

  // The statements around the copies; inside the pipelined loop only the copies.
  Stmt OnlyCopies(const Stmt& stmt) const {
    if (IsTheLoop(stmt)) return CopyingSteps(As<For>(stmt));
    if (fetched_.IsFill(stmt)) return FetchesInStep() ? nullptr : fetched_.Fetch(stmt);
    if (!ContainsTheLoop(stmt)) return nullptr;
    if (stmt->kind == StmtKind::kAlloc) return OnlyCopies(As<Alloc>(stmt).body);
    return MapChildren(stmt, [&](const Stmt& child) { return OnlyCopies(child); });
  }

  Stmt CopyingSteps(const For& loop) const {
    const std::vector<Stmt> copies = PartsOf(loop)->copies;
    std::vector<Stmt> step;
    for (size_t set = 0; set < sets_.count(); ++set) {
      if (set == 1 && FetchesInStep()) step.push_back(InFirstStep(loop, fetched_.FetchAll(work())));
      step.push_back(std::make_shared<Wait>(Empty(set), turn_ - 1));
      for (const Stmt& copy : copies) {
        if (!sets_.Has(set, StoreOf(copy)->buffer)) continue;
        step.push_back(std::make_shared<Copy>(rings_.In(copy, slot_), CopyEngine::kBulk, Full(set),
                                              IsMulticast(copy, cluster_) ? Cluster() : nullptr));
      }
      step.push_back(std::make_shared<Arrive>(Full(set), nullptr, 1, sets_.BytesOfStep(set)));
    }
    return StepsOf(loop, std::move(step));
  }

  bool ContainsTheLoop(const Stmt& root) const {
    return AnyStmt(root, [&](const Stmt& stmt) { return IsTheLoop(stmt); });
  }

  // -- The roles that compute. --

  // The role of one group: it executes only its own rounds, on its own tile of results. Groups multiply one
  // after the other, in the order of operands in the ring.
  Roles::Role Computer(int group) {
    const Stmt computing = WithoutCopies(work(), group);
    Stmt body = StoreInBulk(computing, shared_);
    const bool stores_in_bulk = body != computing;
    if (block_.groups > 1) {
      const std::string suffix = absl::StrCat(".group", group);
      body = CopyWithSuffix(OwnRounds(body, group), suffix);
      for (const Buffer& tile : shared_) {
        if (group == 0 || fetched_.IsSameForAll(tile)) continue;
        of_groups_.push_back(WithSuffix(tile, suffix));
        body = ReplaceBuffer(body, tile, of_groups_.back());
      }
    }
    body = WithCounter(std::move(body));
    if (stores_in_bulk) body = MakeSeq({body, std::make_shared<WaitGroup>(0)});
    return {block_.groups > 1 ? absl::StrCat("compute", group) : "compute", body};
  }

  // for round < R: B(round)  ->  for own: if own * groups + group < R: B(own * groups + group)
  Stmt OwnRounds(const Stmt& body, int group) const {
    const For& loop = As<For>(body);
    const int groups = block_.groups;
    const int64_t rounds = block_.round->extent, own_rounds = CeilDiv(rounds, groups);
    const Var own_round = MakeVar(absl::StrCat(block_.round->name, ".turn"), own_rounds);
    const Expr round = VarRef(own_round) * groups + group;
    Stmt own = SubstituteSimplified(loop.body, VarMap{{block_.round.get(), round}});
    if (rounds % groups != 0)
      own = std::make_shared<If>(MakeBinary(Op::kLt, round, IntConst(rounds)), std::move(own));
    return std::make_shared<For>(own_round, IntConst(own_rounds), LoopKind::kSerial, std::move(own));
  }

  Stmt WithoutCopies(const Stmt& body, int group) const {
    return RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
      if (fetched_.IsFill(stmt)) return fetched_.Await(stmt);
      if (!IsTheLoop(stmt)) return nullptr;
      const For& loop = As<For>(stmt);
      return MakeSeq(
          {InTurn(group, StepsOf(loop, Synchronized(loop))), FetchesInStep() ? nullptr : fetched_.Release()});
    });
  }

  // The work of a step between the waits for its operands and the arrivals that release them.
  std::vector<Stmt> Synchronized(const For& loop) const {
    const bool is_one_set = sets_.count() == 1;
    std::vector<Stmt> parts;
    if (is_one_set) parts.push_back(std::make_shared<Wait>(Full(0), turn_));
    for (const Stmt& part : StmtsOf(PartsOf(loop)->work))
      parts.push_back(rings_.In(is_one_set ? part : WithOwnBarriers(loop, part), slot_));
    if (is_one_set) parts.push_back(ArriveAt(Empty(0), Cluster()));
    return parts;
  }

  // Each reader of a set's tiles between the wait for the set and the arrival that releases it.
  Stmt WithOwnBarriers(const For& loop, const Stmt& work) const {
    if (RunsChildrenOnce(work))
      return MapChildren(work, [&](const Stmt& part) { return WithOwnBarriers(loop, part); });
    const std::optional<size_t> set = sets_.SetOf(work);
    if (!set) return work;
    const Mma* mma = DynAs<Mma>(work);
    const bool is_last = mma != nullptr && FetchesInStep() && fetched_.IsReadBy(*mma);
    return MakeSeq({std::make_shared<Wait>(Full(*set), turn_), work,
                    std::make_shared<Arrive>(Empty(*set), Cluster(), warpgroups_, 0, sets_.tiles(*set),
                                             /*gathers=*/mma == nullptr),
                    is_last ? InLastStep(loop, fetched_.Release()) : nullptr});
  }

  // A group's barrier, after those of the ring, completes a phase when the previous group has multiplied.
  Stmt InTurn(int group, Stmt multiply) const {
    const int groups = block_.groups;
    if (groups == 1) return multiply;
    const Expr own_round = FloorDiv(VarRef(block_.round), groups);
    const Expr phase = group == 0 ? own_round - 1 : own_round;
    return MakeSeq({std::make_shared<Wait>(IntConst(first_turn_barrier_ + group), phase), std::move(multiply),
                    ArriveAt(IntConst(first_turn_barrier_ + (group + 1) % groups), nullptr)});
  }

  const Rings rings_;
  const RingSets sets_;
  const BlockWork block_;
  const Var cluster_;
  const int warpgroups_;  // arrivals of a role that computes: 1 where it multiplies otherwise
  const Expr slot_, turn_;
  const std::vector<Buffer> shared_;
  std::vector<Buffer> of_groups_;  // the same for each further group
  BlockTiles fetched_;
  int64_t first_turn_barrier_ = 0;
};

}  // namespace

absl::StatusOr<Stmt> PipelineInBulk(const For& loop, const LoopParts& parts, const Stmt& launch) {
  Stmt body;
  const std::vector<const For*> blocks = GridLoopsOf(launch, &body);
  for (const Stmt& copy : parts.copies) MYCC_RETURN_IF_ERROR(BulkBoxOf(copy).status());
  const bool in_cluster = !blocks.empty() && blocks.front()->marks.multicast_cluster;
  const Var cluster = in_cluster ? blocks.front()->var : nullptr;
  if (in_cluster) MYCC_RETURN_IF_ERROR(CheckCluster(body, parts, loop.var, cluster));
  std::vector<Buffer> shared;
  const RingWork of_tile = FlattenRing(loop, WithoutSharedAllocs(body, parts.tiles, &shared));
  const bool has_groups =
      std::ranges::any_of(blocks, [](const For* block) { return block->marks.pingpong > 1; });
  // Groups of warps have tiles of their own, each at its own time, but for those that are always the same.
  BlockTiles fetched(of_tile.work, of_tile.ring, shared, /*only_same=*/has_groups);
  MYCC_ASSIGN_OR_RETURN(BlockWork block, WorkOfBlock(loop, blocks, of_tile));
  MYCC_RETURN_IF_ERROR(fetched.others());
  return BulkPipeline(parts, loop.marks.pipeline.stages, std::move(block), std::move(shared),
                      std::move(fetched), cluster, WarpgroupsUnder(body))
      .Build();
}

}  // namespace mycc
