// Index arithmetic of stream-K: the steps and tiles of each block, and the memory of partial sums.
#include "codegen/passes/stream_k.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/function.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/pipeline_loops.h"

namespace mycc {
namespace {

// The memory position of an accumulator's element (row, column), in the order of fragments (FragmentShape): a
// warp's load or store is contiguous. In row-major order it would touch a cache line for each row of a
// fragment.
std::vector<Expr> FragmentPlace(const Expr& row, const Expr& column) {
  return {FloorDiv(Mod(row, 16), 8), FloorDiv(column, 8), FloorDiv(row, 16), Mod(row, 8), Mod(column, 8)};
}
std::vector<int64_t> FragmentShape(const Mma& mma) { return {2, mma.n / 8, mma.m / 16, 8, 8}; }

// The worker's memory position of the element that a nest over an accumulator stores.
std::vector<Expr> PlaceOf(const Expr& worker, const Store& store, const Mma& mma) {
  const Expr flat = FlatIndex(*store.buffer, store.indices);
  const bool by_rows = mma.acc.col_stride == 1;
  const int64_t line = by_rows ? mma.n : mma.m;
  const Expr across = Simplify(FloorDiv(flat, line)), along = Simplify(Mod(flat, line));
  std::vector<Expr> place = {worker};
  for (const Expr& index : by_rows ? FragmentPlace(across, along) : FragmentPlace(along, across))
    place.push_back(Simplify(index));
  return place;
}

// A launch that sets all flags to 0, one thread for each.
Stmt LowerFlags(const Buffer& flags) {
  constexpr int64_t kThreads = 128;
  const int64_t count = flags->shape[0];
  const Var block = MakeVar(flags->name + ".block", CeilDiv(count, kThreads));
  const Var thread = MakeVar(flags->name + ".thread", kThreads);
  const Expr index = VarRef(block) * kThreads + VarRef(thread);
  Stmt lower = std::make_shared<Store>(flags, std::vector<Expr>{index}, IntConst(0, DType::kI32));
  lower = std::make_shared<If>(MakeBinary(Op::kLt, index, IntConst(count)), std::move(lower));
  return MakeNest({{block, LoopKind::kGrid}, {thread, LoopKind::kThread}}, std::move(lower));
}

}  // namespace

StreamShares::StreamShares(int64_t tiles, int64_t steps, int64_t workers, const StreamKGroups& groups)
    : steps_(steps),
      workers_(workers),
      groups_(groups.groups),
      members_(groups.members),
      whole_(tiles / workers),
      dealt_(tiles % workers),
      tiles_of_group_(dealt_ / groups.groups) {
  for (int64_t m = 0; m < members_; ++m) {
    const int64_t begin = Begin(m), end = Begin(m + 1);
    if (begin < end) parts_ = std::max(parts_, (end - 1) / steps - begin / steps + 1);
  }
}

int64_t StreamShares::helpers() const {
  int64_t most = 0, first = 0;
  for (int64_t tile = 0; tile < tiles_of_group_; ++tile) {
    while (Begin(first + 1) <= tile * steps_) ++first;
    int64_t last = first;
    while (Begin(last + 1) < (tile + 1) * steps_) ++last;
    most = std::max(most, last - first);
  }
  return most;
}

Stmt StreamShares::Turns(const Expr& worker, const std::string& name,
                         const std::function<Stmt(const Turn& turn)>& body) const {
  const int64_t dealt_steps = tiles_of_group_ * steps_;
  const auto var = [&](const char* what, int64_t extent) {
    return VarRef(MakeVar(absl::StrCat(name, what), extent));
  };
  const Expr begin = var(".begin", dealt_steps + 1), end = var(".end", dealt_steps + 1),
             turn = var(".turn", parts_ + whole_), tile = var(".tile", dealt_ + whole_ * workers_),
             from = var(".from", steps_), to = var(".to", steps_ + 1),
             before = var(".before", dealt_steps + (whole_ + 1) * steps_);
  const Expr is_dealt = MakeBinary(Op::kLt, turn, IntConst(parts_));
  const auto choose = [&](const Expr& dealt, const Expr& whole) {
    return whole_ == 0 ? dealt : MakeSelect(is_dealt, dealt, whole);
  };
  const Expr of_group = FloorDiv(begin, steps_) + turn, later = turn - parts_;
  const Expr dealt_tile = of_group * groups_ + Mod(worker, groups_);
  Stmt result = body({tile, from, to, before});
  const auto let = [&](const Expr& variable, const Expr& value) {
    result = std::make_shared<Let>(variable->var, value, std::move(result));
  };
  let(before, choose(of_group * steps_ + from - begin, end - begin + later * steps_));
  let(to, choose(MakeBinary(Op::kMin, end - of_group * steps_, IntConst(steps_)), IntConst(steps_)));
  let(from, MakeSelect(MakeBinary(Op::kEq, turn, IntConst(0)), Mod(begin, steps_), IntConst(0)));
  let(tile, choose(dealt_tile, later * workers_ + worker + dealt_));
  const Expr has_steps = MakeBinary(Op::kLt, of_group * steps_, end);
  const Expr is_whole = MakeBinary(Op::kLe, IntConst(parts_), turn);
  result = std::make_shared<If>(whole_ == 0 ? has_steps : MakeBinary(Op::kOr, is_whole, has_steps),
                                std::move(result));
  result = MakeNest({{turn->var}}, std::move(result));
  // Workers that belong to no group have no dealt steps.
  const auto step = [&](const Expr& member) {
    return MakeBinary(Op::kMin, Begin(member), IntConst(dealt_steps));
  };
  let(end, step(Member(worker) + 1));
  let(begin, step(Member(worker)));
  return result;
}

absl::StatusOr<PartialSums> PartialSums::Of(const std::vector<Stmt>& clears, const Stmt& loop,
                                            int64_t workers) {
  PartialSums partial;
  for (const Stmt& clear : clears) {
    const Store* store = StoreOf(clear);
    const auto adds_to_it = [&](const Mma& product) { return product.acc.buffer == store->buffer; };
    const Mma* mma = store == nullptr ? nullptr : FirstOf<Mma>(loop, adds_to_it);
    if (mma == nullptr || mma->m % 16 != 0 || mma->n % 8 != 0) {
      return Refusal(
          "stream_k: ", StmtName(clear),
          " is before the steps of a tile; expected statements that set the sums of tensor cores to zero");
    }
    std::vector<int64_t> shape = FragmentShape(*mma);
    shape.insert(shape.begin(), workers);
    partial.sums_.push_back(
        {clear, mma, MakeBuffer(store->buffer->name + ".parts", store->buffer->dtype, shape)});
  }
  if (partial.sums_.empty()) return Refusal("stream_k: the tiles have no sums");
  partial.flags_ = MakeBuffer(partial.sums_.front().parts->name + ".flags", DType::kI32, {workers});
  return partial;
}

Stmt PartialSums::Give(const Expr& worker) const {
  std::vector<Stmt> parts;
  for (const Sums& sums : sums_) {
    parts.push_back(RewriteEach<Store>(sums.clear, [&](const Store& store) {
      return std::make_shared<Store>(sums.parts, PlaceOf(worker, store, *sums.product),
                                     Load(store.buffer, store.indices));
    }));
  }
  parts.push_back(std::make_shared<Signal>(flags_, worker));
  return MakeSeq(std::move(parts));
}

Stmt PartialSums::Take(const Expr& giver) const {
  std::vector<Stmt> parts = {std::make_shared<Await>(flags_, giver)};
  for (const Sums& sums : sums_) {
    parts.push_back(RewriteEach<Store>(sums.clear, [&](const Store& store) {
      const Expr own = Load(store.buffer, store.indices);
      return std::make_shared<Store>(store.buffer, store.indices,
                                     own + Load(sums.parts, PlaceOf(giver, store, *sums.product)));
    }));
  }
  return MakeSeq(std::move(parts));
}

Stmt PartialSums::Around(Stmt launch) const {
  Stmt result = MakeSeq({LowerFlags(flags_), std::move(launch)});
  result = std::make_shared<Alloc>(flags_, std::move(result));
  for (const Sums& sums : sums_) result = std::make_shared<Alloc>(sums.parts, std::move(result));
  return result;
}

}  // namespace mycc
