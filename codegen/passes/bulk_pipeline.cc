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
// Tiles that all blocks of a cluster read are multicast: each block copies its part to all of them. A slot is
// full after the copying thread has arrived, and the bytes that it expects have come from all blocks. It is
// empty after all blocks have arrived. A role that multiplies by warpgroups arrives once for each of them,
// because each waits for its own products. Where threads read the slot themselves, a barrier comes first.
//
// Two products by warpgroups that share no tile (those with K and with V in attention) have a ring and
// barriers each. A slot of one ring is full or empty whatever the other ring's slots are:
//
//   copy:    for k: wait empty a; a = ..; arrive full a; wait empty b; b = ..; arrive full b
//   compute: for k: wait full a; .. += .. * a; arrive empty a; ..; wait full b; .. += .. * b; arrive empty b
//
// With stream-K (stream_k.h), each block has a range of steps instead of `for k`:
//
//   compute: for turn: acc = 0
//                      for k from .. to: ..
//                      if from > 0: parts[worker] = acc; signal worker
//                      else: if to < steps: for those who have the rest: await them; acc += their parts
//                            y[..] = acc
//
// Both roles are made by one class in one file, because their barriers and slots must agree.
#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/copy_stmt.h"
#include "codegen/passes/pipeline_parts.h"
#include "codegen/passes/stream_k.h"

namespace mycc {
namespace {

// The loops from `root` down to `target` (included): those that repeat the pipelined loop.
bool LoopsTo(const Stmt& root, const Var& target, std::vector<const For*>* loops) {
  const For* loop = DynAs<For>(root);
  if (loop != nullptr) loops->push_back(loop);
  if (loop != nullptr && loop->var == target) return true;
  for (const Stmt& child : Children(root)) {
    if (LoopsTo(child, target, loops)) return true;
  }
  if (loop != nullptr) loops->pop_back();
  return false;
}

// Whether threads load elements of the tiles, or fragments of them (mma.sync).
bool ThreadsRead(const std::vector<Buffer>& tiles, const std::vector<Stmt>& work) {
  bool read = false;
  const auto is_tile = [&](const Buffer& buffer) {
    return std::count(tiles.begin(), tiles.end(), buffer) > 0;
  };
  for (const Stmt& root : work) {
    VisitStmts(root, [&](const Stmt& stmt) {
      const Mma* mma = DynAs<Mma>(stmt);
      if (mma == nullptr || !mma->instruction.starts_with("wgmma."))
        ForEachBuffer(stmt, [&](const Buffer& buffer) { read |= is_tile(buffer); });
      return !read;
    });
  }
  return read;
}

// The tiles that belong to one product each, by product; empty when a tile is also used otherwise, or a
// product does not come once in each turn.
std::vector<std::vector<Buffer>> TilesOfProducts(const std::vector<Buffer>& tiles,
                                                 const std::vector<Stmt>& work) {
  std::vector<std::vector<Buffer>> products;
  size_t uses = 0;
  bool separate = true;
  const auto uses_of = [&](const Stmt& stmt) {
    std::vector<Buffer> used;
    ForEachBuffer(stmt, [&](const Buffer& buffer) {
      if (std::count(tiles.begin(), tiles.end(), buffer) > 0) used.push_back(buffer);
    });
    return used;
  };
  const std::function<void(const Stmt&, bool)> walk = [&](const Stmt& stmt, bool once) {
    const Mma* mma = DynAs<Mma>(stmt);
    std::vector<Buffer> used = uses_of(stmt);
    separate &= used.empty() || (mma != nullptr && mma->instruction.starts_with("wgmma.") && once);
    uses += used.size();
    if (!used.empty()) products.push_back(std::move(used));
    once &= stmt->kind == StmtKind::kSeq || stmt->kind == StmtKind::kAlloc || stmt->kind == StmtKind::kLet;
    for (const Stmt& child : Children(stmt)) walk(child, once);
  };
  for (const Stmt& root : work) walk(root, true);
  std::unordered_set<Buffer> all;
  for (const std::vector<Buffer>& used : products) all.insert(used.begin(), used.end());
  if (!separate || products.size() < 2 || all.size() != uses || uses != tiles.size()) products.clear();
  return products;
}

// The number of an iteration of nested loops.
Expr NumberOf(const std::vector<const For*>& loops) {
  Expr number = IntConst(0);
  for (const For* loop : loops) number = number * loop->var->extent + VarRef(loop->var);
  return number;
}

class BulkPipeline {
 public:
  BulkPipeline(const For& loop, LoopParts parts)
      : loop_(loop),
        parts_(std::move(parts)),
        rings_(parts_.tiles, loop.marks.pipeline.stages),
        ring_(loop.var) {}

  // `body` is the code of one thread block.
  absl::StatusOr<Stmt> Build(const std::vector<const For*>& blocks, const Stmt& body) {
    MYCC_RETURN_IF_ERROR(CheckCopies());
    if (!blocks.empty() && blocks.front()->marks.multicast_cluster) {
      cluster_ = blocks.front()->var;
      MYCC_RETURN_IF_ERROR(CheckCluster(body));
    }
    warpgroups_ = WarpgroupsUnder(body);
    sets_ = TilesOfProducts(parts_.tiles, parts_.work);
    if (sets_.empty()) sets_ = {parts_.tiles};
    work_ = WithoutSharedAllocs(body);
    FlattenRing();
    MYCC_ASSIGN_OR_RETURN(const std::vector<const For*> grid, Persist(blocks));
    if (!number_) {
      std::vector<const For*> loops;
      LoopsTo(work_, ring_, &loops);
      for (const For* loop : loops) {
        if (loop == loops.front() || IsConstInt(loop->extent)) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("a ring through all iterations of loop ", loops.front()->var->name,
                         " needs steps of one number; loop ", loop->var->name, " has a computed length"));
      }
      number_ = NumberOf(loops);
    }
    const int stages = loop_.marks.pipeline.stages;
    slot_ = Simplify(Mod(number_, stages));
    turn_ = Simplify(FloorDiv(number_, stages));
    std::vector<Roles::Role> roles = {{"copy", CopyWithSuffix(OnlyCopies(work_), ".copy")}};
    for (int group = 0; group < groups_; ++group) roles.push_back(Computer(group));
    const int blocks_of_cluster = cluster_ ? static_cast<int>(cluster_->extent) : 1;
    std::vector<int> arrivals;
    for (size_t set = 0; set < sets_.size(); ++set) {
      arrivals.insert(arrivals.end(), stages, 1);
      arrivals.insert(arrivals.end(), stages, blocks_of_cluster * ArrivalsOfRole());
    }
    if (groups_ > 1) arrivals.insert(arrivals.end(), groups_, ArrivalsOfRole());
    Stmt result = std::make_shared<Roles>(std::move(roles), std::move(arrivals));
    result = rings_.Around(std::move(result));
    for (auto it = shared_.rbegin(); it != shared_.rend(); ++it)
      result = std::make_shared<Alloc>(*it, std::move(result));
    for (auto it = grid.rbegin(); it != grid.rend(); ++it)
      result = std::make_shared<For>((*it)->var, (*it)->extent, LoopKind::kGrid, std::move(result),
                                     LoopMarks{.multicast_cluster = (*it)->marks.multicast_cluster});
    return partial_ ? partial_->Around(std::move(result)) : result;
  }

 private:
  absl::Status CheckCopies() const {
    for (const Stmt& copy : parts_.copies) MYCC_RETURN_IF_ERROR(BulkBoxOf(copy).status());
    return absl::OkStatus();
  }

  // The blocks of a cluster advance through the ring together, and share some of its tiles.
  absl::Status CheckCluster(const Stmt& body) const {
    const std::string who = absl::StrCat("the blocks of cluster ", cluster_->name);
    bool in_step = true, shares = false;
    std::vector<Stmt> around;
    PathTo(body, loop_.var, &around);
    for (const Stmt& stmt : around)
      ForEachExpr(stmt, [&](const Expr& expr) { in_step &= !UsesVar(expr, cluster_.get()); });
    if (!in_step) return absl::FailedPreconditionError(absl::StrCat(who, " do not execute the same steps"));
    for (const Stmt& copy : parts_.copies) {
      if (!IsShared(copy)) continue;
      shares = true;
      const BulkBox box = *BulkBoxOf(copy);
      int64_t rows = 1, outermost = 0;
      for (size_t d = 0; d + 1 < box.extent.size(); ++d) {
        if (outermost <= 1) outermost = box.extent[d];
        rows *= box.extent[d];
      }
      // A swizzle repeats every 8 rows.
      if (outermost % cluster_->extent == 0 && rows / cluster_->extent % 8 == 0) continue;
      return absl::FailedPreconditionError(absl::StrCat(who, " cannot divide the ", rows, " rows of ",
                                                        box.shared->name,
                                                        " into equal parts of whole 8 rows"));
    }
    if (shares) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(who, " have no tile in common"));
  }

  // The statements from `root` down to the pipelined loop, without the loop.
  static bool PathTo(const Stmt& root, const Var& target, std::vector<Stmt>* path) {
    if (const For* loop = DynAs<For>(root); loop != nullptr && loop->var == target) return true;
    path->push_back(root);
    for (const Stmt& child : Children(root)) {
      if (PathTo(child, target, path)) return true;
    }
    path->pop_back();
    return false;
  }

  // Whether all blocks of the cluster copy the same elements.
  bool IsShared(const Stmt& copy) const {
    bool shared = cluster_ != nullptr;
    VisitStmts(copy, [&](const Stmt& stmt) {
      ForEachExpr(stmt, [&](const Expr& expr) { shared = shared && !UsesVar(expr, cluster_.get()); });
      return shared;
    });
    return shared;
  }

  Expr Cluster() const { return cluster_ ? VarRef(cluster_) : nullptr; }

  int ArrivalsOfRole() const { return std::max(warpgroups_, 1); }

  // The arrival of a role that computes.
  Stmt ArriveAt(const Expr& barrier, const Expr& cluster) const {
    return MakeSeq({ThreadsRead(parts_.tiles, parts_.work) ? std::make_shared<Barrier>() : nullptr,
                    std::make_shared<Arrive>(barrier, cluster, ArrivalsOfRole())});
  }

  bool IsOf(size_t set, const Buffer& tile) const {
    return std::count(sets_[set].begin(), sets_[set].end(), tile) > 0;
  }

  // The bytes that all blocks together copy into this block's tiles of a set in one step.
  int64_t BytesOfStep(size_t set) const {
    int64_t bytes = 0;
    for (const Stmt& copy : parts_.copies) {
      const BulkBox box = *BulkBoxOf(copy);
      if (!IsOf(set, box.shared)) continue;
      int64_t elements = 1;
      for (const int64_t extent : box.extent) elements *= extent;
      bytes += elements * DTypeBytes(box.shared->dtype);
    }
    return bytes;
  }

  Stmt WithoutSharedAllocs(const Stmt& body) {
    return RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
      const Alloc* alloc = DynAs<Alloc>(stmt);
      if (alloc == nullptr || alloc->buffer->scope != Scope::kShared ||
          std::count(parts_.tiles.begin(), parts_.tiles.end(), alloc->buffer) > 0)
        return nullptr;
      shared_.push_back(alloc->buffer);
      return alloc->body;
    });
  }

  // Puts a loop around work_ over the iterations of the persistent grid loop that one block executes. Returns
  // the grid's loops.
  absl::StatusOr<std::vector<const For*>> Persist(const std::vector<const For*>& blocks) {
    std::vector<const For*> grid = blocks;
    for (const For*& block : grid) {
      const int64_t workers = block->marks.persistent_blocks, tiles = block->var->extent;
      if (workers == 0 || (workers >= tiles && block->marks.stream_k.groups == 0)) continue;
      const Var worker = MakeVar(absl::StrCat(block->var->name, ".block"), workers);
      owned_.push_back(std::make_shared<For>(worker, IntConst(workers), LoopKind::kGrid, nullptr));
      const For& outer = *std::exchange(block, &As<For>(owned_.back()));
      if (outer.marks.stream_k.groups > 0) {
        MYCC_RETURN_IF_ERROR(Stream(outer, worker, grid.size()));
        continue;
      }
      const Var tile_step = MakeVar(absl::StrCat(outer.var->name, ".round"), (tiles + workers - 1) / workers);
      const Expr tile = VarRef(tile_step) * workers + VarRef(worker);
      work_ = SubstituteSimplified(work_, VarMap{{outer.var.get(), tile}});
      if (tiles % workers != 0)
        work_ = std::make_shared<If>(MakeBinary(Op::kLt, tile, IntConst(tiles)), work_);
      work_ = std::make_shared<For>(tile_step, IntConst(tile_step->extent), LoopKind::kSerial, work_);
      tile_step_ = tile_step;
      groups_ = outer.marks.pingpong;
    }
    return grid;
  }

  // The block's share of all steps. A worker waits only for sums of workers with lower numbers.
  absl::Status Stream(const For& block, const Var& number, size_t block_loops) {
    const int64_t workers = number->extent, tiles = block.var->extent, steps = ring_->extent;
    const auto [groups, members] = block.marks.stream_k;
    if (!IsConstInt(loop_.extent)) {
      return absl::FailedPreconditionError(
          absl::StrCat("stream_k ", block.var->name, ": loop ", ring_->name, " has a computed length"));
    }
    const int64_t rest = tiles % workers;
    if (block_loops > 1 || block.marks.pingpong > 1 || rest == 0 || rest % groups != 0 ||
        groups * members > workers || rest / groups * steps < members) {
      return absl::FailedPreconditionError(
          absl::StrCat("stream_k ", block.var->name, ": ", groups, " groups of ", members, " of ", workers,
                       " blocks share the last ", rest, " of ", tiles, " tiles of ", steps,
                       " steps; expected a number of tiles that the groups divide, a step for each block, "
                       "one block loop and no pingpong"));
    }
    const StreamShares shares(tiles, steps, workers, block.marks.stream_k);
    const Expr worker = IntConst(workers - 1) - VarRef(number);
    absl::Status status;
    work_ = shares.Turns(worker, block.var->name, [&](const StreamShares::Turn& turn) {
      const Var step = MakeVar(ring_->name, steps);
      Stmt work = SubstituteSimplified(work_, VarMap{{block.var.get(), turn.tile}});
      work = RewriteStmts(work, [&](const Stmt& stmt) -> Stmt {
        const Seq* seq = DynAs<Seq>(stmt);
        if (seq == nullptr || LoopIn(*seq) == seq->stmts.end()) return nullptr;
        absl::StatusOr<Stmt> shared = WithPartialSums(*seq, shares, worker, turn);
        status.Update(shared.status());
        return shared.ok() ? *shared : nullptr;
      });
      work = RewriteStmts(work, [&](const Stmt& stmt) -> Stmt {
        if (!IsTheLoop(stmt)) return nullptr;
        Stmt body = SubstituteSimplified(As<For>(stmt).body, VarMap{{ring_.get(), turn.from + VarRef(step)}});
        return std::make_shared<For>(step, turn.to - turn.from, LoopKind::kSerial, std::move(body),
                                     loop_.marks);
      });
      ring_ = step;
      number_ = turn.before + VarRef(step);
      return work;
    });
    if (status.ok() && !partial_)
      return absl::FailedPreconditionError("stream_k: the sums of a tile are not used");
    return status;
  }

  // The code after the loop is executed only by the worker with a tile's first steps.
  absl::StatusOr<Stmt> WithPartialSums(const Seq& seq, const StreamShares& shares, const Expr& worker,
                                       const StreamShares::Turn& turn) {
    const auto ring = LoopIn(seq);
    MYCC_ASSIGN_OR_RETURN(partial_, PartialSums::Of({seq.stmts.begin(), ring}, *ring, shares.workers()));
    const Var helper =
        MakeVar(absl::StrCat(loop_.var->name, ".helper"), std::max<int64_t>(shares.helpers(), 1));
    const Expr ahead = VarRef(helper) + 1;
    Stmt take =
        std::make_shared<If>(shares.Has(worker, ahead, turn), partial_->Take(shares.Ahead(worker, ahead)));
    take = std::make_shared<For>(helper, IntConst(helper->extent), LoopKind::kSerial, std::move(take));
    take = std::make_shared<If>(MakeBinary(Op::kLt, turn.to, IntConst(shares.steps())), std::move(take));
    std::vector<Stmt> ending = {std::move(take)};
    ending.insert(ending.end(), ring + 1, seq.stmts.end());
    std::vector<Stmt> parts(seq.stmts.begin(), ring + 1);
    parts.push_back(std::make_shared<If>(MakeBinary(Op::kLt, IntConst(0), turn.from), partial_->Give(worker),
                                         MakeSeq(std::move(ending))));
    return MakeSeq(std::move(parts));
  }

  // Serial loops that contain only the pipelined loop are fused with it: the ring runs through all their
  // iterations.
  void FlattenRing() {
    bool done = false;
    work_ = RewriteStmts(work_, [&](const Stmt& stmt) -> Stmt {
      // Bottom-up: the outermost loop of the nest comes last, and is replaced by the new loop.
      const std::vector<const For*> nest = NestAround(stmt);
      if (nest.size() < 2 || (done && nest.back()->var != ring_)) return nullptr;
      done = true;
      int64_t total = 1;
      for (const For* loop : nest) total *= loop->var->extent;
      ring_ = MakeVar(absl::StrCat(loop_.var->name, ".step"), total);
      Stmt body = SubstituteSimplified(nest.back()->body, ValuesAt(nest, VarRef(ring_)));
      return std::make_shared<For>(ring_, IntConst(total), LoopKind::kSerial, std::move(body), loop_.marks);
    });
  }

  // The barriers of a slot of a set.
  Expr Full(size_t set) const {
    return Simplify(slot_ + 2 * static_cast<int64_t>(set) * loop_.marks.pipeline.stages);
  }
  Expr Empty(size_t set) const { return Simplify(Full(set) + loop_.marks.pipeline.stages); }

  // The statements around the copies; inside the pipelined loop only the copies.
  Stmt OnlyCopies(const Stmt& stmt) const {
    if (IsTheLoop(stmt)) {
      std::vector<Stmt> body;
      for (size_t set = 0; set < sets_.size(); ++set) {
        body.push_back(std::make_shared<Wait>(Empty(set), turn_ - 1));
        for (const Stmt& copy : CopiesOf(stmt)) {
          if (!IsOf(set, StoreOf(copy)->buffer)) continue;
          body.push_back(std::make_shared<Copy>(rings_.In(copy, slot_), CopyEngine::kBulk, Full(set),
                                                IsShared(copy) ? Cluster() : nullptr));
        }
        body.push_back(std::make_shared<Arrive>(Full(set), nullptr, 1, BytesOfStep(set)));
      }
      return std::make_shared<For>(As<For>(stmt).var, As<For>(stmt).extent, LoopKind::kSerial, MakeSeq(body));
    }
    if (!ContainsTheLoop(stmt)) return nullptr;
    if (stmt->kind == StmtKind::kAlloc) return OnlyCopies(As<Alloc>(stmt).body);
    std::vector<Stmt> children;
    for (const Stmt& child : Children(stmt)) {
      Stmt kept = OnlyCopies(child);
      if (kept || stmt->kind != StmtKind::kSeq) children.push_back(std::move(kept));
    }
    return WithChildren(stmt, std::move(children));
  }

  // The role of one group: it executes only its own tile steps, on its own tile of results. Groups multiply
  // one after the other, in the order of operands in the ring.
  Roles::Role Computer(int group) {
    const std::vector<Buffer> tiles = shared_;
    Stmt body = WithoutCopies(work_, group);
    if (groups_ > 1) {
      const std::string suffix = absl::StrCat(".group", group);
      body = CopyWithSuffix(OwnTileSteps(body, group), suffix);
      for (const Buffer& tile : tiles) {
        if (group == 0) break;
        BufferNode own = *tile;
        own.name += suffix;
        shared_.push_back(std::make_shared<BufferNode>(std::move(own)));
        body = ReplaceBuffer(body, tile, shared_.back());
      }
    }
    if (stores_in_bulk_) body = MakeSeq({body, std::make_shared<WaitGroup>(0)});
    return {groups_ > 1 ? absl::StrCat("compute", group) : "compute", body};
  }

  // for tile_step < T: B(tile_step)  ->  for own: if own * groups + group < T: B(own * groups + group)
  Stmt OwnTileSteps(const Stmt& body, int group) const {
    const For& loop = As<For>(body);
    const int64_t tile_steps = tile_step_->extent, own_steps = (tile_steps + groups_ - 1) / groups_;
    const Var own_step = MakeVar(absl::StrCat(tile_step_->name, ".turn"), own_steps);
    const Expr tile_step = VarRef(own_step) * groups_ + group;
    Stmt own = SubstituteSimplified(loop.body, VarMap{{tile_step_.get(), tile_step}});
    if (tile_steps % groups_ != 0)
      own = std::make_shared<If>(MakeBinary(Op::kLt, tile_step, IntConst(tile_steps)), std::move(own));
    return std::make_shared<For>(own_step, IntConst(own_steps), LoopKind::kSerial, std::move(own));
  }

  // The work of a step between the waits for its operands and the arrivals that release them.
  std::vector<Stmt> Synchronized(const std::vector<Stmt>& work) const {
    std::vector<Stmt> parts;
    if (sets_.size() == 1) parts.push_back(std::make_shared<Wait>(Full(0), turn_));
    for (const Stmt& part : work)
      parts.push_back(rings_.In(sets_.size() == 1 ? part : WithOwnBarriers(part), slot_));
    if (sets_.size() == 1) parts.push_back(ArriveAt(Empty(0), Cluster()));
    return parts;
  }

  Stmt WithOwnBarriers(const Stmt& work) const {
    return RewriteStmts(work, [&](const Stmt& stmt) -> Stmt {
      const Mma* mma = DynAs<Mma>(stmt);
      if (mma == nullptr) return nullptr;
      for (size_t set = 0; set < sets_.size(); ++set) {
        if (!IsOf(set, mma->a.buffer) && !IsOf(set, mma->b.buffer)) continue;
        return MakeSeq({std::make_shared<Wait>(Full(set), turn_), stmt,
                        std::make_shared<Arrive>(Empty(set), Cluster(), ArrivalsOfRole(), 0, sets_[set])});
      }
      return nullptr;
    });
  }

  // Barrier `first + group`, after those of the ring, completes a phase when the previous group has
  // multiplied.
  std::vector<Stmt> InTurn(int group, std::vector<Stmt> multiply) const {
    if (groups_ == 1) return multiply;
    const int64_t first = static_cast<int64_t>(2 * sets_.size()) * loop_.marks.pipeline.stages;
    const Expr own_step = FloorDiv(VarRef(tile_step_), groups_);
    multiply.insert(multiply.begin(),
                    std::make_shared<Wait>(IntConst(first + group), group == 0 ? own_step - 1 : own_step));
    multiply.push_back(ArriveAt(IntConst(first + (group + 1) % groups_), nullptr));
    return multiply;
  }

  Stmt WithoutCopies(const Stmt& body, int group) {
    Stmt result = RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
      if (!IsTheLoop(stmt)) return nullptr;
      return MakeSeq(
          InTurn(group, {std::make_shared<For>(As<For>(stmt).var, As<For>(stmt).extent, LoopKind::kSerial,
                                               MakeSeq(Synchronized(WorkOf(stmt))))}));
    });
    return StoreInBulk(result);
  }

  // Tiles of results that only their own nest reads are stored by the copy engine; the next tile is written
  // after the last one was read.
  Stmt StoreInBulk(const Stmt& body) {
    return RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
      const Seq* seq = DynAs<Seq>(stmt);
      if (seq == nullptr) return nullptr;
      std::vector<Stmt> parts;
      bool changed = false;
      for (const Stmt& part : seq->stmts) {
        const Store* store = StoreOf(part);
        const bool is_nest = part->kind == StmtKind::kFor && As<For>(part).loop_kind == LoopKind::kSerial;
        if (store != nullptr && is_nest && IsEpilogueTile(store->buffer)) {
          parts.push_back(std::make_shared<WaitGroup>(0));
          changed = stores_in_bulk_ = true;
        }
        const bool leaves = store != nullptr && is_nest && store->value->op == Op::kLoad &&
                            IsEpilogueTile(store->value->buffer) && BulkBoxOf(part).ok();
        if (leaves) {
          parts.insert(parts.end(),
                       {std::make_shared<Fence>(), std::make_shared<Copy>(part, CopyEngine::kBulk),
                        std::make_shared<CommitGroup>()});
          changed = stores_in_bulk_ = true;
        } else {
          parts.push_back(part);
        }
      }
      return changed ? MakeSeq(parts) : nullptr;
    });
  }

  bool IsEpilogueTile(const Buffer& buffer) const {
    return std::count(shared_.begin(), shared_.end(), buffer) > 0;
  }

  bool IsTheLoop(const Stmt& stmt) const {
    const For* loop = DynAs<For>(stmt);
    return loop != nullptr && loop->var == ring_;
  }
  std::vector<Stmt>::const_iterator LoopIn(const Seq& seq) const {
    return std::find_if(seq.stmts.begin(), seq.stmts.end(),
                        [&](const Stmt& part) { return IsTheLoop(part); });
  }
  bool ContainsTheLoop(const Stmt& root) const {
    bool found = false;
    VisitStmts(root, [&](const Stmt& stmt) {
      found |= IsTheLoop(stmt);
      return !found;
    });
    return found;
  }
  // The parts of the current loop, with the block's number substituted.
  std::vector<Stmt> CopiesOf(const Stmt& stmt) const { return PartsOf(As<For>(stmt))->copies; }
  std::vector<Stmt> WorkOf(const Stmt& stmt) const { return PartsOf(As<For>(stmt))->work; }

  const For& loop_;
  const LoopParts parts_;
  const Rings rings_;
  std::vector<std::vector<Buffer>> sets_;  // of tiles with barriers of their own
  std::vector<Buffer> shared_;             // tiles outside of the ring
  std::vector<Stmt> owned_;
  Var ring_;                            // the pipelined loop's variable
  Var cluster_;                         // the loop over the blocks of a cluster; null without one
  std::optional<PartialSums> partial_;  // of tiles that several blocks share
  Var tile_step_;                       // numbers the persistent loop's iterations in a block; or null
  int groups_ = 1;
  int warpgroups_ = 0;  // of a role that computes, if it multiplies by warpgroups
  Stmt work_;
  Expr number_, slot_, turn_;
  bool stores_in_bulk_ = false;
};

}  // namespace

absl::StatusOr<Stmt> PipelineInBulk(const For& loop, LoopParts parts, const std::vector<const For*>& blocks,
                                    const Stmt& body) {
  return BulkPipeline(loop, std::move(parts)).Build(blocks, body);
}

}  // namespace mycc
