#include "codegen/ir/cluster.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

// Expands the blocks of one loop into the roles of one program.
class Expansion {
 public:
  explicit Expansion(const For& loop) : rank_(loop.var), blocks_(loop.var->extent) {}

  Stmt Expand(const Stmt& stmt) {
    if (const For* loop = DynAs<For>(stmt)) return loop->With({.body = Expand(loop->body)});
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
      tiles_.push_back({alloc->buffer});
      for (int64_t block = 1; block < blocks_; ++block)
        tiles_.back().push_back(WithSuffix(alloc->buffer, SuffixOf(block)));
      const std::vector<Buffer> own = tiles_.back();
      Stmt body = Expand(alloc->body);
      for (const Buffer& buffer : own) body = std::make_shared<Alloc>(buffer, std::move(body));
      return body;
    }
    MYCC_CHECK(stmt->kind == StmtKind::kRoles) << "blocks that run side by side have roles";
    return ExpandRoles(stmt);
  }

 private:
  static std::string SuffixOf(int64_t block) { return block == 0 ? "" : absl::StrCat(".block", block); }

  Stmt ExpandRoles(const Stmt& of_block) {
    const Roles& roles = As<Roles>(of_block);
    barriers_ = static_cast<int64_t>(roles.barrier_counts.size());
    VisitStmts(of_block, [&](const Stmt& stmt) {
      if (const Signal* signal = DynAs<Signal>(stmt)) flags_ = signal->flags;
      return !flags_;
    });
    std::vector<Roles::Role> all;
    std::vector<int> counts;
    for (int64_t block = 0; block < blocks_; ++block) {
      counts.insert(counts.end(), roles.barrier_counts.begin(), roles.barrier_counts.end());
      for (Roles::Role role : roles.roles) {
        role.name += SuffixOf(block);
        role.body = OfBlock(role.body, block);
        all.push_back(std::move(role));
      }
    }
    if (flags_) counts.insert(counts.end(), flags_->shape[0], 1);
    return std::make_shared<Roles>(std::move(all), std::move(counts));
  }

  Expr BarrierOf(const Expr& barrier, int64_t block) const { return barrier + block * barriers_; }

  Stmt ArriveIn(const Arrive& arrive, int64_t block) const {
    return std::make_shared<Arrive>(BarrierOf(arrive.barrier, block), nullptr, arrive.arrivals,
                                    arrive.expected_bytes, arrive.released, arrive.gathers);
  }

  // A flag becomes a barrier with one arrival; these barriers come after those of the blocks.
  Expr Flag(const Expr& index) const { return index + blocks_ * barriers_; }

  // Sets a flag. REQUIRES: it is 0.
  static Stmt Raise(const Signal& signal) {
    const Expr flag = Load(signal.flags, {signal.index});
    const Stmt store = std::make_shared<Store>(signal.flags, std::vector<Expr>{signal.index},
                                               IntConst(1, signal.flags->dtype));
    return MakeSeq(
        {std::make_shared<Barrier>(), std::make_shared<Let>(MakeVar("flag", 1), MakeCast(DType::kI64, flag),
                                                            MakeSeq({std::make_shared<Barrier>(), store}))});
  }

  // The statement with the tiles of `block` instead of those of `from`.
  Stmt WithTiles(Stmt stmt, int64_t from, int64_t block) const {
    for (const std::vector<Buffer>& own : tiles_) {
      if (from != block) stmt = ReplaceBuffer(stmt, own[from], own[block]);
    }
    return stmt;
  }

  Stmt OfBlock(const Stmt& body, int64_t block) const {
    const Stmt own = RewriteStmts(WithTiles(body, 0, block), [&](const Stmt& stmt) -> Stmt {
      std::vector<Stmt> to_all;
      if (const Copy* copy = DynAs<Copy>(stmt)) {
        if (!copy->barrier) return nullptr;
        if (!copy->cluster)
          return std::make_shared<Copy>(copy->body, copy->engine, BarrierOf(copy->barrier, block));
        const Stmt part = PartOfMulticast(copy->body, IntConst(block), blocks_);
        for (int64_t to = 0; to < blocks_; ++to) {
          to_all.push_back(
              std::make_shared<Copy>(WithTiles(part, block, to), copy->engine, BarrierOf(copy->barrier, to)));
        }
      } else if (const Arrive* arrive = DynAs<Arrive>(stmt)) {
        if (!arrive->cluster) return ArriveIn(*arrive, block);
        for (int64_t to = 0; to < blocks_; ++to) to_all.push_back(ArriveIn(*arrive, to));
      } else if (const Signal* signal = DynAs<Signal>(stmt)) {
        return MakeSeq({Raise(*signal), std::make_shared<Arrive>(Flag(signal->index))});
      } else if (const Await* await = DynAs<Await>(stmt)) {
        return MakeSeq(
            {std::make_shared<Wait>(Flag(await->index), IntConst(0)), std::make_shared<Barrier>()});
      } else if (const Wait* wait = DynAs<Wait>(stmt)) {
        return std::make_shared<Wait>(BarrierOf(wait->barrier, block), wait->phase);
      }
      return to_all.empty() ? nullptr : MakeSeq(std::move(to_all));
    });
    return SubstituteVars(own, VarMap{{rank_.get(), IntConst(block)}});
  }

  const Var rank_;
  const int64_t blocks_;
  int64_t barriers_ = 0;
  Buffer flags_;                            // between the blocks; null without any
  std::vector<std::vector<Buffer>> tiles_;  // for each allocation: one tile for each block
};

}  // namespace

Stmt ExpandBlocks(const Stmt& body) {
  return RewriteStmts(body, [](const Stmt& stmt) -> Stmt {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || loop->loop_kind != LoopKind::kGrid) return nullptr;
    // In scheduled IR a cluster is only a mark: its blocks do not communicate yet.
    const bool is_cluster = loop->marks.multicast_cluster && Contains(loop->body, StmtKind::kRoles);
    return is_cluster || Contains(loop->body, StmtKind::kSignal) ? Expansion(*loop).Expand(loop->body)
                                                                 : nullptr;
  });
}

Stmt PartOfMulticast(const Stmt& nest, const Expr& rank, int64_t blocks) {
  const For& loop = As<For>(nest);
  if (loop.var->extent == 1) {
    return loop.With({.body = PartOfMulticast(loop.body, rank, blocks)});
  }
  const int64_t part = loop.var->extent / blocks;
  const Var own = MakeVar(loop.var->name, part);
  return loop.With({.var = own,
                    .extent = IntConst(part),
                    .body = SubstituteVars(loop.body, VarMap{{loop.var.get(), rank * part + VarRef(own)}})});
}

}  // namespace mycc
