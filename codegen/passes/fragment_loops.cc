// Replaces loops over a tensor-core accumulator by loops over the threads and registers of the instruction's
// layout: each thread initializes, computes and stores the elements that it holds.
//
//   for i in 128: for j in 256: y[i, j] = f(acc[i, j])
//     ->
//   thread g in 2: thread w in 4: thread r in 8: thread c in 4:
//     unroll t, unroll n in 32, unroll h in 2, vector e in 2:
//       y[i, j] = f(acc[i, j])   with i = g*64 + w*16 + h*8 + r,  j = n*8 + c*2 + e
//
// The m16n8 tiles of mma.sync and the m64nN tiles of wgmma (four warps, one below the other) have the same
// layout inside 16 rows and 8 columns [PTX ISA, "Matrix fragments" and "Register fragments" of wgmma].
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/fragments.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

absl::Status Refuse(const Buffer& acc, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("the accumulator ", acc->name, ": ", why));
}

bool TouchesStmt(const Stmt& stmt, const Buffer& buffer) {
  if (const Store* store = DynAs<Store>(stmt); store != nullptr && store->buffer == buffer) return true;
  bool loads = false;
  ForEachExpr(stmt, [&](const Expr& expr) {
    Visit(expr, [&](const ExprNode& e) { loads |= e.op == Op::kLoad && e.buffer == buffer; });
  });
  return loads;
}

bool Touches(const Stmt& root, const Buffer& buffer) {
  bool touches = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    touches |= stmt->kind != StmtKind::kMma && TouchesStmt(stmt, buffer);
    return !touches;
  });
  return touches;
}

class FragmentNests {
 public:
  FragmentNests(const Buffer& acc, const Mma& mma, const FragmentLayout& layout)
      : acc_(acc),
        tile_(MakeBuffer(acc->name, acc->dtype, {mma.m, mma.n}, Scope::kAccumulator)),
        layout_(layout) {}

  const Buffer& tile() const { return tile_; }
  const absl::Status& status() const { return status_; }

  Stmt Lower(const Stmt& stmt) {
    if (const Mma* mma = DynAs<Mma>(stmt); mma != nullptr && mma->acc.buffer == acc_) {
      return std::make_shared<Mma>(mma->instruction, mma->m, mma->n, mma->k,
                                   TileView{tile_, {IntConst(0), IntConst(0)}, mma->n, 1}, mma->a, mma->b,
                                   mma->warps);
    }
    if (!Touches(stmt, acc_)) return LowerChildren(stmt);
    if (stmt->kind == StmtKind::kFor && IsNest(stmt)) return Distribute(stmt);
    if (stmt->kind == StmtKind::kStore) {
      status_.Update(Refuse(acc_, "it is used outside of a nest of loops over the whole tile"));
      return stmt;
    }
    return LowerChildren(stmt);
  }

 private:
  Stmt LowerChildren(const Stmt& stmt) {
    return MapChildren(stmt, [&](const Stmt& child) { return Lower(child); });
  }

  // A nest consists of loops, conditions and one store; every dimension of the accumulator is indexed by a
  // loop of the nest.
  bool IsNest(const Stmt& root) const {
    Stmt inner = root;
    std::vector<const VarNode*> vars;
    while (inner->kind == StmtKind::kFor || inner->kind == StmtKind::kIf) {
      if (const For* loop = DynAs<For>(inner)) {
        if (loop->loop_kind != LoopKind::kSerial || !ConstExtent(*loop)) return false;
        vars.push_back(loop->var.get());
      } else if (As<If>(inner).otherwise) {
        return false;
      }
      inner = Children(inner)[0];
    }
    const Store* store = DynAs<Store>(inner);
    if (store == nullptr) return false;
    const std::optional<std::vector<Expr>> index = IndexOf(*store);
    if (!index) return false;
    size_t used = 0;
    for (size_t d = 0; d < index->size(); ++d) {
      const Expr& e = (*index)[d];
      if (IsConstInt(e, int64_t{0}) && acc_->shape[d] == 1) continue;
      if (e->op != Op::kVar || used >= vars.size() ||
          std::find(vars.begin(), vars.end(), e->var.get()) == vars.end())
        return false;
      ++used;
    }
    return used == vars.size();
  }

  // The index of the accumulator's element, stored or loaded; nullopt when several differ.
  std::optional<std::vector<Expr>> IndexOf(const Store& store) const {
    std::optional<std::vector<Expr>> index;
    bool same = true;
    const auto see = [&](const std::vector<Expr>& seen) {
      if (!index) index = seen;
      for (size_t d = 0; d < seen.size(); ++d) same &= StructurallyEqual((*index)[d], seen[d]);
    };
    if (store.buffer == acc_) see(store.indices);
    Visit(store.value, [&](const ExprNode& e) {
      if (e.op == Op::kLoad && e.buffer == acc_) see(e.args);
    });
    return same ? index : std::nullopt;
  }

  Stmt Distribute(const Stmt& nest) {
    std::vector<const For*> loops;
    Stmt inner = nest;
    std::vector<Expr> conditions;
    while (inner->kind != StmtKind::kStore) {
      if (const For* loop = DynAs<For>(inner)) loops.push_back(loop);
      if (const If* guard = DynAs<If>(inner)) SplitConjunction(guard->condition, &conditions);
      inner = Children(inner)[0];
    }
    const Store& store = As<Store>(inner);
    const FragmentLoops fragment = MakeFragmentLoops(layout_, loops[0]->var->name);
    const VarMap values = ValuesOf(*IndexOf(store), fragment);
    const auto map = [&](const Expr& e) { return Simplify(Substitute(OnTile(e, fragment), values)); };
    std::vector<Expr> indices;
    if (store.buffer == acc_) {
      indices = {fragment.row, fragment.column};
    } else {
      for (const Expr& index : store.indices) indices.push_back(map(index));
    }
    Stmt body = std::make_shared<Store>(store.buffer == acc_ ? tile_ : store.buffer, std::move(indices),
                                        map(store.value));
    for (Expr& condition : conditions) condition = map(condition);
    if (!conditions.empty()) body = std::make_shared<If>(JoinConjunction(conditions), std::move(body));
    return fragment.Around(std::move(body));
  }

  Expr OnTile(const Expr& expr, const FragmentLoops& fragment) const {
    return Rewrite(expr, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad || e->buffer != acc_) return nullptr;
      return Load(tile_, {fragment.row, fragment.column});
    });
  }

  // The values of the nest's loops as functions of row and column: the accumulator's leading dimensions
  // number the rows, the others the columns.
  VarMap ValuesOf(const std::vector<Expr>& index, const FragmentLoops& fragment) const {
    size_t split = 0;
    for (int64_t rows = 1; split < index.size() && rows < tile_->shape[0]; ++split)
      rows *= acc_->shape[split];
    VarMap values;
    const auto decode = [&](size_t begin, size_t end, Expr rest) {
      for (size_t d = end; d-- > begin;) {
        const int64_t extent = acc_->shape[d];
        if (index[d]->op == Op::kVar)
          values[index[d]->var.get()] = d == begin ? rest : Simplify(Mod(rest, extent));
        rest = Simplify(FloorDiv(rest, extent));
      }
    };
    decode(0, split, fragment.row);
    decode(split, index.size(), fragment.column);
    return values;
  }

  const Buffer acc_, tile_;
  const FragmentLayout layout_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Stmt> FragmentLoopsOf(const Stmt& body, const Target& target) {
  absl::Status status;
  Stmt result = RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
    const Alloc* alloc = DynAs<Alloc>(stmt);
    if (alloc == nullptr || alloc->buffer->scope != Scope::kAccumulator || !status.ok()) return nullptr;
    const Mma* mma = nullptr;
    VisitStmts(alloc->body, [&](const Stmt& s) {
      if (const Mma* m = DynAs<Mma>(s); m != nullptr && m->acc.buffer == alloc->buffer) mma = m;
      return mma == nullptr;
    });
    if (mma == nullptr) return nullptr;
    const absl::StatusOr<FragmentLayout> layout = FragmentLayoutOf(*mma, target);
    status.Update(layout.status());
    if (!layout.ok()) return nullptr;
    FragmentNests nests(alloc->buffer, *mma, *layout);
    Stmt inner = nests.Lower(alloc->body);
    status.Update(nests.status());
    return std::make_shared<Alloc>(nests.tile(), std::move(inner));
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace mycc
