// Carries out pipeline marks: copies into shared memory run ahead of the computing that reads them, through a
// ring of tiles.
//
// Bulk, with a role that copies and one that computes (warp specialization), as published for Hopper
// (CUTLASS, FlashAttention-3, fast.cu):
//
//   block b in T over P:               block c in P:
//     alloc acc                          alloc ring of s
//     acc = 0                            roles:
//     for k pipelined in s:      ->        copy:    for i: for k: wait empty; copy slot = ..; arrive full
//       alloc s: s = x[..]                 compute: for i: acc = 0
//       mma acc += s                                         for k: wait full; mma acc += slot; arrive empty
//     y[..] = acc                                            y[..] = acc
//
// Tiles that all blocks of a cluster want are multicast: each block copies its part to all of them, and a
// slot is full, and empty, when all have said so.
//
// By threads (cp.async), for Ampere and where the copy engine cannot: the copies of the first s - 1
// iterations come before the loop, and each iteration issues those of the one s - 1 later.
//
// The slot of an iteration is its number, over all loops inside the block, modulo s.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/copy_stmt.h"
#include "codegen/passes/passes.h"

namespace mycc {
namespace {

bool IsPipelined(const Stmt& stmt) {
  const For* loop = DynAs<For>(stmt);
  return loop != nullptr && loop->marks.pipeline.kind != PipelineKind::kNone;
}

const For* FindPipelined(const Stmt& body) {
  const For* found = nullptr;
  VisitStmts(body, [&](const Stmt& stmt) {
    if (found == nullptr && IsPipelined(stmt)) found = &As<For>(stmt);
    return found == nullptr;
  });
  return found;
}

// The body of a pipelined loop, taken apart.
struct LoopParts {
  std::vector<Buffer> tiles;  // allocated in the loop, in shared memory
  std::vector<Stmt> copies;   // nests that fill them from memory outside
  std::vector<Stmt> work;     // the rest
};

const Store* StoreOf(Stmt nest) {
  while (nest->kind == StmtKind::kFor || nest->kind == StmtKind::kIf) {
    if (const If* guard = DynAs<If>(nest); guard != nullptr && guard->otherwise) return nullptr;
    nest = Children(nest)[0];
  }
  return DynAs<Store>(nest);
}

absl::StatusOr<LoopParts> PartsOf(const For& loop) {
  LoopParts parts;
  Stmt inner = loop.body;
  while (const Alloc* alloc = DynAs<Alloc>(inner)) {
    if (alloc->buffer->scope != Scope::kShared) break;
    parts.tiles.push_back(alloc->buffer);
    inner = alloc->body;
  }
  const std::vector<Stmt> stmts =
      inner->kind == StmtKind::kSeq ? As<Seq>(inner).stmts : std::vector<Stmt>{inner};
  for (const Stmt& stmt : stmts) {
    const Store* store = StoreOf(stmt);
    const bool copies =
        store != nullptr && std::count(parts.tiles.begin(), parts.tiles.end(), store->buffer) > 0;
    if (copies && !parts.work.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("loop ", loop.var->name,
                                                        " cannot be pipelined: ", store->buffer->name,
                                                        " is filled after computing began"));
    }
    (copies ? parts.copies : parts.work).push_back(stmt);
  }
  if (parts.copies.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("loop ", loop.var->name, " cannot be pipelined: it copies nothing into shared memory"));
  return parts;
}

// The tiles as rings: a dimension of slots before theirs.
class Rings {
 public:
  Rings(const std::vector<Buffer>& tiles, int slots) {
    for (const Buffer& tile : tiles) {
      BufferNode ring = *tile;
      ring.shape.insert(ring.shape.begin(), slots);
      ring.layout.ring = true;
      rings_.push_back({tile, std::make_shared<BufferNode>(std::move(ring))});
    }
  }

  // The statement on the tiles of one slot.
  Stmt In(const Stmt& stmt, const Expr& slot) const {
    Stmt result = stmt;
    for (const auto& [tile, ring] : rings_) {
      result = RewriteStmts(
          result, [&, &tile = tile, &ring = ring](const Stmt& s) { return InViews(s, tile, ring, slot); });
      result = ReplaceBuffer(result, tile, ring, [&](const std::vector<Expr>& indices) {
        std::vector<Expr> in_ring = {slot};
        in_ring.insert(in_ring.end(), indices.begin(), indices.end());
        return in_ring;
      });
    }
    return result;
  }

  Stmt Around(Stmt body) const {
    for (auto it = rings_.rbegin(); it != rings_.rend(); ++it)
      body = std::make_shared<Alloc>(it->second, std::move(body));
    return body;
  }

 private:
  static Stmt InViews(const Stmt& stmt, const Buffer& tile, const Buffer& ring, const Expr& slot) {
    const Mma* mma = DynAs<Mma>(stmt);
    if (mma == nullptr) return nullptr;
    const auto in_ring = [&](TileView view) {
      if (view.buffer != tile) return view;
      view.buffer = ring;
      view.indices.insert(view.indices.begin(), slot);
      return view;
    };
    return std::make_shared<Mma>(mma->instruction, mma->m, mma->n, mma->k, in_ring(mma->acc), in_ring(mma->a),
                                 in_ring(mma->b), mma->warps);
  }

  std::vector<std::pair<Buffer, Buffer>> rings_;
};

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

// The number of an iteration of nested loops.
Expr NumberOf(const std::vector<const For*>& loops) {
  Expr number = IntConst(0);
  for (const For* loop : loops) number = number * loop->var->extent + VarRef(loop->var);
  return number;
}

// Serial loops that hold nothing but the next one, down to the pipelined loop; none otherwise.
std::vector<const For*> NestAround(const Stmt& stmt) {
  std::vector<const For*> nest;
  for (const For* loop = DynAs<For>(stmt); loop != nullptr; loop = DynAs<For>(loop->body)) {
    if (loop->loop_kind != LoopKind::kSerial) break;
    nest.push_back(loop);
    if (loop->marks.pipeline.kind != PipelineKind::kNone) return nest;
  }
  return {};
}

// The loops' values in iteration `number` of the whole nest.
VarMap ValuesAt(const std::vector<const For*>& nest, const Expr& number) {
  VarMap values;
  Expr rest = number;
  for (auto it = nest.rbegin(); it != nest.rend(); ++it) {
    const int64_t extent = (*it)->var->extent;
    values[(*it)->var.get()] = it + 1 == nest.rend() ? rest : Simplify(Mod(rest, extent));
    rest = Simplify(FloorDiv(rest, extent));
  }
  return values;
}

class BulkPipeline {
 public:
  BulkPipeline(const For& loop, LoopParts parts)
      : loop_(loop),
        parts_(std::move(parts)),
        rings_(parts_.tiles, loop.marks.pipeline.stages),
        ring_(loop.var) {}

  // `body`: of one block.
  absl::StatusOr<Stmt> Build(const std::vector<const For*>& blocks, const Stmt& body) {
    MYCC_RETURN_IF_ERROR(CheckCopies());
    if (!blocks.empty() && blocks.front()->marks.cluster) {
      cluster_ = blocks.front()->var;
      MYCC_RETURN_IF_ERROR(CheckCluster(body));
    }
    const std::vector<const For*> grid = Persist(blocks, WithoutSharedAllocs(body));
    FlattenRing();
    std::vector<const For*> loops;
    LoopsTo(work_, ring_, &loops);
    number_ = NumberOf(loops);
    const int stages = loop_.marks.pipeline.stages;
    slot_ = Simplify(Mod(number_, stages));
    turn_ = Simplify(FloorDiv(number_, stages));
    std::vector<Roles::Role> roles = {{"copy", CopyWithSuffix(OnlyCopies(work_), ".copy")}};
    for (int group = 0; group < groups_; ++group) roles.push_back(Computer(group));
    std::vector<int> arrivals(2 * stages, cluster_ ? static_cast<int>(cluster_->extent) : 1);
    if (groups_ > 1) arrivals.insert(arrivals.end(), groups_, 1);
    Stmt result = std::make_shared<Roles>(std::move(roles), std::move(arrivals));
    result = rings_.Around(std::move(result));
    for (auto it = shared_.rbegin(); it != shared_.rend(); ++it)
      result = std::make_shared<Alloc>(*it, std::move(result));
    for (auto it = grid.rbegin(); it != grid.rend(); ++it)
      result = std::make_shared<For>((*it)->var, (*it)->extent, LoopKind::kBlock, std::move(result),
                                     LoopMarks{.cluster = (*it)->marks.cluster});
    return result;
  }

 private:
  absl::Status CheckCopies() const {
    for (const Stmt& copy : parts_.copies) MYCC_RETURN_IF_ERROR(BulkBoxOf(copy).status());
    return absl::OkStatus();
  }

  // The blocks of a cluster go through the ring in step, and share some of its tiles.
  absl::Status CheckCluster(const Stmt& body) const {
    const std::string who = absl::StrCat("the blocks of cluster ", cluster_->name);
    bool in_step = true, shares = false;
    std::vector<Stmt> around;
    PathTo(body, loop_.var, &around);
    for (const Stmt& stmt : around)
      ForEachExpr(stmt, [&](const Expr& expr) { in_step &= !UsesVar(expr, cluster_.get()); });
    if (!in_step) return absl::FailedPreconditionError(absl::StrCat(who, " would not have the same steps"));
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
      return absl::FailedPreconditionError(absl::StrCat(who, " cannot share out the ", rows, " rows of ",
                                                        box.shared->name, " in multiples of 8"));
    }
    if (shares) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(who, " have no tile in common"));
  }

  // The statements from `root` down to the pipelined loop, without it.
  static bool PathTo(const Stmt& root, const Var& target, std::vector<Stmt>* path) {
    if (const For* loop = DynAs<For>(root); loop != nullptr && loop->var == target) return true;
    path->push_back(root);
    for (const Stmt& child : Children(root)) {
      if (PathTo(child, target, path)) return true;
    }
    path->pop_back();
    return false;
  }

  // All blocks of the cluster copy the same.
  bool IsShared(const Stmt& copy) const {
    bool shared = cluster_ != nullptr;
    VisitStmts(copy, [&](const Stmt& stmt) {
      ForEachExpr(stmt, [&](const Expr& expr) { shared = shared && !UsesVar(expr, cluster_.get()); });
      return shared;
    });
    return shared;
  }

  Expr Cluster() const { return cluster_ ? VarRef(cluster_) : nullptr; }

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

  // Sets work_: with a loop over the iterations of the persistent block loop that one block carries out.
  // Returns the loops of the grid.
  std::vector<const For*> Persist(const std::vector<const For*>& blocks, const Stmt& body) {
    work_ = body;
    std::vector<const For*> grid = blocks;
    for (const For*& block : grid) {
      const int64_t workers = block->marks.persistent_blocks, tiles = block->var->extent;
      if (workers == 0 || workers >= tiles) continue;
      const Var worker = MakeVar(absl::StrCat(block->var->name, ".block"), workers);
      const Var round = MakeVar(absl::StrCat(block->var->name, ".round"), (tiles + workers - 1) / workers);
      const Expr tile = VarRef(round) * workers + VarRef(worker);
      work_ = SubstituteSimplified(work_, VarMap{{block->var.get(), tile}});
      if (tiles % workers != 0)
        work_ = std::make_shared<If>(MakeBinary(Op::kLt, tile, IntConst(tiles)), work_);
      work_ = std::make_shared<For>(round, IntConst(round->extent), LoopKind::kSerial, work_);
      round_ = round;
      groups_ = block->marks.alternating;
      owned_.push_back(std::make_shared<For>(worker, IntConst(workers), LoopKind::kBlock, nullptr));
      block = &As<For>(owned_.back());
    }
    return grid;
  }

  // Serial loops that hold nothing but the pipelined one become one with it: the ring turns through all of
  // them alike.
  void FlattenRing() {
    bool done = false;
    work_ = RewriteStmts(work_, [&](const Stmt& stmt) -> Stmt {
      // Bottom-up: the outermost of the nest comes last, and makes the loop anew.
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

  Expr Full() const { return slot_; }
  Expr Empty() const { return slot_ + loop_.marks.pipeline.stages; }

  // The statements around the copies, and in the pipelined loop the copies alone.
  Stmt OnlyCopies(const Stmt& stmt) const {
    if (IsTheLoop(stmt)) {
      std::vector<Stmt> body = {std::make_shared<Wait>(Empty(), turn_ - 1)};
      for (const Stmt& copy : CopiesOf(stmt)) {
        body.push_back(std::make_shared<Copy>(rings_.In(copy, slot_), CopyEngine::kBulk, Full(),
                                              IsShared(copy) ? Cluster() : nullptr));
      }
      body.push_back(std::make_shared<Arrive>(Full(), Cluster()));
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

  // The role of one group: its rounds alone, on a tile of results of its own. Groups multiply one after the
  // other, in the order in which the ring brings operands.
  Roles::Role Computer(int group) {
    const std::vector<Buffer> tiles = shared_;
    Stmt body = WithoutCopies(work_, group);
    if (groups_ > 1) {
      const std::string suffix = absl::StrCat(".group", group);
      body = CopyWithSuffix(OwnRounds(body, group), suffix);
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

  // for round: B(round)  ->  for turn: if turn * groups + group < rounds: B(turn * groups + group)
  Stmt OwnRounds(const Stmt& body, int group) const {
    const For& loop = As<For>(body);
    const int64_t rounds = round_->extent, turns = (rounds + groups_ - 1) / groups_;
    const Var turn = MakeVar(absl::StrCat(round_->name, ".turn"), turns);
    const Expr round = VarRef(turn) * groups_ + group;
    Stmt own = SubstituteSimplified(loop.body, VarMap{{round_.get(), round}});
    if (rounds % groups_ != 0)
      own = std::make_shared<If>(MakeBinary(Op::kLt, round, IntConst(rounds)), std::move(own));
    return std::make_shared<For>(turn, IntConst(turns), LoopKind::kSerial, std::move(own));
  }

  // Barrier `2 * stages + group` completes a phase when the group before has multiplied.
  std::vector<Stmt> InTurn(int group, std::vector<Stmt> multiply) const {
    if (groups_ == 1) return multiply;
    const int64_t first = int64_t{2} * loop_.marks.pipeline.stages;
    const Expr turn = FloorDiv(VarRef(round_), groups_);
    multiply.insert(multiply.begin(),
                    std::make_shared<Wait>(IntConst(first + group), group == 0 ? turn - 1 : turn));
    multiply.push_back(std::make_shared<Arrive>(IntConst(first + (group + 1) % groups_)));
    return multiply;
  }

  Stmt WithoutCopies(const Stmt& body, int group) {
    Stmt result = RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
      if (!IsTheLoop(stmt)) return nullptr;
      std::vector<Stmt> parts = {std::make_shared<Wait>(Full(), turn_)};
      for (const Stmt& work : WorkOf(stmt)) parts.push_back(rings_.In(work, slot_));
      parts.push_back(std::make_shared<Arrive>(Empty(), Cluster()));
      return MakeSeq(InTurn(group, {std::make_shared<For>(As<For>(stmt).var, As<For>(stmt).extent,
                                                          LoopKind::kSerial, MakeSeq(parts))}));
    });
    return StoreInBulk(result);
  }

  // Tiles of results leave by the copy engine, where nothing but their own nest reads them: the next tile
  // waits until the last one was read.
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
  bool ContainsTheLoop(const Stmt& root) const {
    bool found = false;
    VisitStmts(root, [&](const Stmt& stmt) {
      found |= IsTheLoop(stmt);
      return !found;
    });
    return found;
  }
  // The parts of the loop as it stands now, its block's number substituted.
  std::vector<Stmt> CopiesOf(const Stmt& stmt) const { return PartsOf(As<For>(stmt))->copies; }
  std::vector<Stmt> WorkOf(const Stmt& stmt) const { return PartsOf(As<For>(stmt))->work; }

  const For& loop_;
  const LoopParts parts_;
  const Rings rings_;
  std::vector<Buffer> shared_;  // tiles beside the ring
  std::vector<Stmt> owned_;
  Var ring_;     // of the pipelined loop
  Var cluster_;  // the loop over the blocks of a cluster; null without
  Var round_;    // of the persistent loop's iterations in one block; null without
  int groups_ = 1;
  Stmt work_;
  Expr number_, slot_, turn_;
  bool stores_in_bulk_ = false;
};

// In place of the nest of serial loops that ends in the pipelined one.
class ThreadsPipeline {
 public:
  ThreadsPipeline(std::vector<const For*> nest, LoopParts parts)
      : nest_(std::move(nest)),
        parts_(std::move(parts)),
        stages_(nest_.back()->marks.pipeline.stages),
        rings_(parts_.tiles, nest_.back()->marks.pipeline.stages) {}

  Stmt Build() const {
    int64_t total = 1;
    for (const For* loop : nest_) total *= loop->var->extent;
    const std::string& name = nest_.back()->var->name;
    const Var step = MakeVar(absl::StrCat(name, ".step"), total);
    std::vector<Stmt> result;
    for (int64_t ahead = 0; ahead < stages_ - 1; ++ahead) {
      if (ahead < total) result.push_back(Copies(IntConst(ahead), absl::StrCat(".ahead", ahead)));
      result.push_back(std::make_shared<CommitGroup>());
    }
    const Expr next = VarRef(step) + (stages_ - 1);
    std::vector<Stmt> body = {std::make_shared<WaitGroup>(stages_ - 2)};
    if (total >= stages_) {
      Stmt copies = Copies(next, ".next");
      body.push_back(std::make_shared<If>(Simplify(MakeBinary(Op::kLt, next, IntConst(total))), copies));
    }
    body.push_back(std::make_shared<CommitGroup>());
    for (const Stmt& work : parts_.work)
      body.push_back(rings_.In(SubstituteSimplified(work, At(VarRef(step))), Mod(VarRef(step), stages_)));
    result.push_back(std::make_shared<For>(step, IntConst(total), LoopKind::kSerial, MakeSeq(body)));
    result.push_back(std::make_shared<WaitGroup>(0));
    return rings_.Around(MakeSeq(result));
  }

 private:
  VarMap At(const Expr& number) const { return ValuesAt(nest_, number); }

  Stmt Copies(const Expr& number, const std::string& suffix) const {
    std::vector<Stmt> copies;
    for (const Stmt& copy : parts_.copies) {
      Stmt at = SubstituteSimplified(rings_.In(copy, Simplify(Mod(number, stages_))), At(number));
      copies.push_back(std::make_shared<Copy>(CopyWithSuffix(at, suffix), CopyEngine::kThreads));
    }
    return MakeSeq(copies);
  }

  const std::vector<const For*> nest_;
  const LoopParts parts_;
  const int64_t stages_;
  const Rings rings_;
};

// From the top: the outermost loop of the nest is found first.
Stmt PipelineByThreads(const Stmt& stmt, const LoopParts& parts) {
  const std::vector<const For*> nest = NestAround(stmt);
  if (!nest.empty()) return ThreadsPipeline(nest, parts).Build();
  return MapChildren(stmt, [&](const Stmt& child) { return PipelineByThreads(child, parts); });
}

absl::StatusOr<Stmt> PipelineLaunch(const Stmt& launch) {
  const For* loop = FindPipelined(launch);
  const For* grid = DynAs<For>(launch);
  if (grid != nullptr && grid->marks.cluster &&
      (loop == nullptr || loop->marks.pipeline.kind != PipelineKind::kBulk)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cluster ", grid->var->name, ": only bulk copies of a pipeline reach other blocks"));
  }
  if (loop == nullptr) return launch;
  MYCC_ASSIGN_OR_RETURN(LoopParts parts, PartsOf(*loop));
  if (loop->marks.pipeline.kind == PipelineKind::kBulk) {
    std::vector<const For*> blocks;
    Stmt body = launch;
    while (const For* block = DynAs<For>(body)) {
      if (block->loop_kind != LoopKind::kBlock) break;
      blocks.push_back(block);
      body = block->body;
    }
    return BulkPipeline(*loop, std::move(parts)).Build(blocks, body);
  }
  return PipelineByThreads(launch, parts);
}

}  // namespace

absl::StatusOr<Stmt> PipelineLoops(const Stmt& body) {
  // Each launch has at most one pipelined loop: its statement at the root, inside the tensors between
  // launches.
  if (const Alloc* alloc = DynAs<Alloc>(body)) {
    MYCC_ASSIGN_OR_RETURN(Stmt inner, PipelineLoops(alloc->body));
    return inner == alloc->body ? body : std::make_shared<Alloc>(alloc->buffer, std::move(inner));
  }
  if (const Seq* seq = DynAs<Seq>(body)) {
    std::vector<Stmt> parts;
    for (const Stmt& part : seq->stmts) {
      MYCC_ASSIGN_OR_RETURN(Stmt done, PipelineLoops(part));
      parts.push_back(std::move(done));
    }
    return parts == seq->stmts ? body : MakeSeq(std::move(parts));
  }
  return PipelineLaunch(body);
}

}  // namespace mycc
