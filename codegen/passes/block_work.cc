// Divides a grid's tiles among thread blocks: in rounds, or by steps (stream-K).
#include "codegen/passes/block_work.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/pipeline_loops.h"

namespace mycc {
namespace {

// Steps are numbered as if a loop ran through its variable's extent; skip_masked may leave less of it.
bool HasComputedLength(const For* loop) { return !IsConstInt(loop->extent, loop->var->extent); }

class BlockDivider {
 public:
  BlockDivider(const For& loop, RingWork of_tile) : loop_(loop) { made_.of_block = std::move(of_tile); }

  absl::StatusOr<BlockWork> Divide(const std::vector<const For*>& blocks) && {
    made_.grid = blocks;
    for (const For*& block : made_.grid) {
      const int64_t workers = block->marks.persistent_blocks;
      const bool shares = block->marks.stream_k.groups > 0;
      if (workers == 0 || (workers >= block->var->extent && !shares)) continue;
      const Var worker = MakeVar(absl::StrCat(block->var->name, ".block"), workers);
      made_.owned.push_back(std::make_shared<For>(worker, IntConst(workers), LoopKind::kGrid, nullptr));
      const For& tiles = *std::exchange(block, &As<For>(made_.owned.back()));
      if (shares) {
        MYCC_RETURN_IF_ERROR(Stream(tiles, worker));
      } else {
        TakeRounds(tiles, worker);
      }
    }
    MYCC_RETURN_IF_ERROR(NumberSteps());
    return std::move(made_);
  }

 private:
  Stmt& work() { return made_.of_block.work; }
  Var& ring() { return made_.of_block.ring; }

  // A worker has one tile in each round, or none in the last. Tiles of computed lengths are taken in the
  // opposite order in every second round.
  void TakeRounds(const For& tiles, const Var& worker) {
    const int64_t workers = worker->extent, rounds = CeilDiv(tiles.var->extent, workers);
    made_.round = MakeVar(absl::StrCat(tiles.var->name, ".round"), rounds);
    made_.groups = tiles.marks.pingpong;
    const bool turns_back = HasComputedLength(&loop_);
    const Expr round = VarRef(made_.round), own = VarRef(worker);
    const Var place = turns_back ? MakeVar(absl::StrCat(made_.round->name, ".place"), workers) : worker;
    const Expr tile = round * workers + VarRef(place);
    Stmt work_of_round = turns_back ? std::make_shared<Let>(tiles.var, tile, work())
                                    : SubstituteSimplified(work(), VarMap{{tiles.var.get(), tile}});
    if (tiles.var->extent % workers != 0) {
      const Expr exists = MakeBinary(Op::kLt, tile, IntConst(tiles.var->extent));
      work_of_round = std::make_shared<If>(exists, std::move(work_of_round));
    }
    if (turns_back) {
      const Expr is_back = MakeBinary(Op::kLt, IntConst(0), Mod(round, 2));
      const Expr value = MakeSelect(is_back, IntConst(workers - 1) - own, own);
      work_of_round = std::make_shared<Let>(place, value, std::move(work_of_round));
    }
    work() = std::make_shared<For>(made_.round, IntConst(rounds), LoopKind::kSerial, work_of_round);
  }

  // The number of a step, counted where a computed length says how many steps a tile has.
  absl::Status NumberSteps() {
    if (made_.number) return absl::OkStatus();
    // The pipelined loop, and the loops around it, the outermost first.
    const std::vector<const For*> loops =
        LoopsOn({PathTo(work(), [&](const Stmt& stmt) { return IsLoopOver(stmt, ring()); })});
    made_.number = IterationNumber(loops);
    const auto computed = std::find_if(loops.begin() + 1, loops.end(), HasComputedLength);
    if (computed == loops.end()) return absl::OkStatus();
    if (made_.groups > 1) {
      return Refusal("pingpong through all iterations of loop ", loops.front()->var->name,
                     " needs steps of one number; loop ", (*computed)->var->name, " has a computed length");
    }
    made_.counter.emplace(ring()->name, IterationsOf(loops));
    made_.number = made_.counter->before() + VarRef(ring());
    return absl::OkStatus();
  }

  absl::Status CheckStream(const For& block, int64_t workers) {
    const int64_t tiles = block.var->extent, steps = ring()->extent, rest = tiles % workers;
    const auto [groups, members] = block.marks.stream_k;
    if (HasComputedLength(&loop_)) {
      return Refusal("stream_k ", block.var->name, ": loop ", ring()->name, " has a computed length");
    }
    if (made_.grid.size() > 1 || block.marks.pingpong > 1 || rest == 0 || rest % groups != 0 ||
        groups * members > workers || rest / groups * steps < members) {
      return Refusal("stream_k ", block.var->name, ": ", groups, " groups of ", members, " of ", workers,
                     " blocks share the last ", rest, " of ", tiles, " tiles of ", steps,
                     " steps; expected a number of tiles that the groups divide, a step for each block, "
                     "one block loop and no pingpong");
    }
    return absl::OkStatus();
  }

  // The block's share of all steps. A worker waits only for sums of workers with lower numbers.
  absl::Status Stream(const For& block, const Var& number) {
    const int64_t workers = number->extent;
    MYCC_RETURN_IF_ERROR(CheckStream(block, workers));
    const StreamShares shares(block.var->extent, ring()->extent, workers, block.marks.stream_k);
    const Expr worker = IntConst(workers - 1) - VarRef(number);
    absl::Status status;
    work() = shares.Turns(worker, block.var->name, [&](const StreamShares::Turn& turn) {
      const Stmt of_turn = SubstituteSimplified(work(), VarMap{{block.var.get(), turn.tile}});
      const absl::StatusOr<Stmt> shared = TryRewriteEach<Seq>(
          of_turn, [&](const Seq& seq) { return WithPartialSums(seq, shares, worker, turn); });
      status.Update(shared.status());
      return shared.ok() ? WithStepsOf(turn, *shared) : of_turn;
    });
    if (status.ok() && !made_.partial) return Refusal("stream_k: the sums of a tile are not used");
    return status;
  }

  // The loop over the turn's steps in place of the ring's.
  Stmt WithStepsOf(const StreamShares::Turn& turn, const Stmt& work) {
    const Var step = MakeVar(ring()->name, ring()->extent);
    Stmt result = RewriteEach<For>(work, [&](const For& loop) -> Stmt {
      if (loop.var != ring()) return nullptr;
      Stmt body = SubstituteSimplified(loop.body, VarMap{{ring().get(), turn.from + VarRef(step)}});
      return loop_.With({.var = step, .extent = turn.to - turn.from, .body = std::move(body)});
    });
    ring() = step;
    made_.number = turn.before + VarRef(step);
    return result;
  }

  // The code after the loop is executed only by the worker with a tile's first steps. Null where the loop is
  // not in the sequence.
  absl::StatusOr<Stmt> WithPartialSums(const Seq& seq, const StreamShares& shares, const Expr& worker,
                                       const StreamShares::Turn& turn) {
    const auto ring =
        std::ranges::find_if(seq.stmts, [&](const Stmt& part) { return IsLoopOver(part, this->ring()); });
    if (ring == seq.stmts.end()) return nullptr;
    MYCC_ASSIGN_OR_RETURN(made_.partial, PartialSums::Of({seq.stmts.begin(), ring}, *ring, shares.workers()));
    const Var helper =
        MakeVar(absl::StrCat(loop_.var->name, ".helper"), std::max<int64_t>(shares.helpers(), 1));
    const Expr ahead = VarRef(helper) + 1;
    Stmt take = std::make_shared<If>(shares.Has(worker, ahead, turn),
                                     made_.partial->Take(shares.Ahead(worker, ahead)));
    take = std::make_shared<For>(helper, IntConst(helper->extent), LoopKind::kSerial, std::move(take));
    take = std::make_shared<If>(MakeBinary(Op::kLt, turn.to, IntConst(shares.steps())), std::move(take));
    std::vector<Stmt> ending = {std::move(take)};
    ending.insert(ending.end(), ring + 1, seq.stmts.end());
    std::vector<Stmt> parts(seq.stmts.begin(), ring + 1);
    parts.push_back(std::make_shared<If>(MakeBinary(Op::kLt, IntConst(0), turn.from),
                                         made_.partial->Give(worker), MakeSeq(std::move(ending))));
    return MakeSeq(std::move(parts));
  }

  const For& loop_;
  BlockWork made_;
};

}  // namespace

RingWork FlattenRing(const For& loop, const Stmt& work) {
  RingWork flat = {nullptr, loop.var};
  bool done = false;
  flat.work = RewriteStmts(work, [&](const Stmt& stmt) -> Stmt {
    // Bottom-up: the outermost loop of the nest comes last, and is replaced by the new loop.
    const std::vector<const For*> nest = NestAround(stmt);
    if (nest.size() < 2 || (done && nest.back()->var != flat.ring)) return nullptr;
    done = true;
    const int64_t total = IterationsOf(nest);
    flat.ring = MakeVar(absl::StrCat(loop.var->name, ".step"), total);
    Stmt body = SubstituteSimplified(nest.back()->body, ValuesAt(nest, VarRef(flat.ring)));
    return loop.With({.var = flat.ring, .extent = IntConst(total), .body = std::move(body)});
  });
  return flat;
}

absl::StatusOr<BlockWork> WorkOfBlock(const For& loop, const std::vector<const For*>& blocks,
                                      RingWork of_tile) {
  return BlockDivider(loop, std::move(of_tile)).Divide(blocks);
}

}  // namespace mycc
