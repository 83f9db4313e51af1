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

constexpr DType kCounted = DType::kI32;

bool HasComputedLength(const For* loop) { return !IsConstInt(loop->extent); }

Stmt IfThereIs(const Expr& tile, const Var& tiles, int64_t workers, Stmt work) {
  if (tiles->extent % workers == 0) return work;
  return std::make_shared<If>(MakeBinary(Op::kLt, tile, IntConst(tiles->extent)), std::move(work));
}

// One round of worker `worker`: its tile, if there is one.
Stmt RoundInOrder(const Stmt& work, const Var& tiles, const Var& round, const Var& worker) {
  const Expr tile = VarRef(round) * worker->extent + VarRef(worker);
  return IfThereIs(tile, tiles, worker->extent, SubstituteSimplified(work, VarMap{{tiles.get(), tile}}));
}

// Workers take their tiles in the opposite order in every second round.
Stmt RoundThereAndBack(const Stmt& work, const Var& tiles, const Var& round, const Var& worker) {
  const int64_t workers = worker->extent;
  const Var place = MakeVar(absl::StrCat(round->name, ".place"), workers);
  const Expr tile = VarRef(round) * workers + VarRef(place),
             is_back = MakeBinary(Op::kLt, IntConst(0), Mod(VarRef(round), 2));
  Stmt own = IfThereIs(tile, tiles, workers, std::make_shared<Let>(tiles, tile, work));
  return std::make_shared<Let>(
      place, MakeSelect(is_back, IntConst(workers - 1) - VarRef(worker), VarRef(worker)), std::move(own));
}

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

  void TakeRounds(const For& tiles, const Var& worker) {
    const int64_t workers = worker->extent, rounds = CeilDiv(tiles.var->extent, workers);
    made_.round = MakeVar(absl::StrCat(tiles.var->name, ".round"), rounds);
    made_.groups = tiles.marks.pingpong;
    Stmt round = (HasComputedLength(&loop_) ? RoundThereAndBack : RoundInOrder)(work(), tiles.var,
                                                                                made_.round, worker);
    work() = std::make_shared<For>(made_.round, IntConst(rounds), LoopKind::kSerial, std::move(round));
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
      Stmt of_turn = SubstituteSimplified(work(), VarMap{{block.var.get(), turn.tile}});
      of_turn = RewriteEach<Seq>(of_turn, [&](const Seq& seq) -> Stmt {
        if (RingIn(seq) == seq.stmts.end()) return nullptr;
        absl::StatusOr<Stmt> shared = WithPartialSums(seq, shares, worker, turn);
        status.Update(shared.status());
        return shared.ok() ? *shared : nullptr;
      });
      return WithStepsOf(turn, of_turn);
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

  // The code after the loop is executed only by the worker with a tile's first steps.
  absl::StatusOr<Stmt> WithPartialSums(const Seq& seq, const StreamShares& shares, const Expr& worker,
                                       const StreamShares::Turn& turn) {
    const auto ring = RingIn(seq);
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

  std::vector<Stmt>::const_iterator RingIn(const Seq& seq) {
    return std::ranges::find_if(seq.stmts, [&](const Stmt& part) { return IsLoopOver(part, ring()); });
  }

  const For& loop_;
  BlockWork made_;
};

}  // namespace

RingCounter::RingCounter(const std::string& name, int64_t most)
    : counter_(MakeBuffer(absl::StrCat(name, ".count"), kCounted, {}, Scope::kLocal)),
      before_(MakeVar(absl::StrCat(name, ".counted"), most + 1)) {}

Stmt RingCounter::Counting(Stmt loop, const Expr& length) const {
  // A loop of negative length has no steps.
  const Expr after = before() + Simplify(MakeBinary(Op::kMax, length, IntConst(0)));
  Stmt count = std::make_shared<Store>(counter_, std::vector<Expr>{}, MakeCast(kCounted, after));
  return std::make_shared<Let>(before_, MakeCast(DType::kI64, Load(counter_, {})),
                               MakeSeq({std::move(loop), std::move(count)}));
}

Stmt RingCounter::Around(Stmt role) const {
  Stmt reset = std::make_shared<Store>(counter_, std::vector<Expr>{}, MakeCast(kCounted, IntConst(0)));
  return std::make_shared<Alloc>(counter_, MakeSeq({std::move(reset), std::move(role)}));
}

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
