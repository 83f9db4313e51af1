#include "codegen/ir/stmt_exprs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

// Maps `exprs` into `out`; false, with `out` unchanged, when `map` kept them all.
template <typename Map>
bool MapVector(const std::vector<Expr>& exprs, const Map& map, std::vector<Expr>* out) {
  for (size_t i = 0; i < exprs.size(); ++i) {
    Expr mapped = map(exprs[i]);
    if (mapped == exprs[i]) continue;
    *out = exprs;
    (*out)[i] = std::move(mapped);
    for (++i; i < exprs.size(); ++i) (*out)[i] = map(exprs[i]);
    return true;
  }
  return false;
}

template <typename Map>
bool MapView(const TileView& view, const Map& map, TileView* out) {
  std::vector<Expr> indices;
  if (!MapVector(view.indices, map, &indices)) return false;
  out->indices = std::move(indices);
  return true;
}

template <typename Map>
Stmt MapBlock(const Stmt& stmt, const Map& map) {
  const Block& block = As<Block>(stmt);
  std::shared_ptr<Block> changed;
  const auto edit = [&]() -> Block& {
    if (!changed) changed = std::make_shared<Block>(block);
    return *changed;
  };
  for (size_t i = 0; i < block.iters.size(); ++i) {
    Expr binding = map(block.iters[i].binding);
    if (binding != block.iters[i].binding) edit().iters[i].binding = std::move(binding);
  }
  std::vector<Expr> indices;
  if (MapVector(block.indices, map, &indices)) edit().indices = std::move(indices);
  Expr value = map(block.value);
  if (value != block.value) edit().value = std::move(value);
  return changed ? Stmt(std::move(changed)) : stmt;
}

Stmt WithViews(const Mma& mma, TileView acc, TileView a, TileView b) {
  auto changed = std::make_shared<Mma>(mma);
  changed->acc = std::move(acc);
  changed->a = std::move(a);
  changed->b = std::move(b);
  return changed;
}

template <typename Map>
Stmt MapMma(const Stmt& stmt, const Map& map) {
  const Mma& mma = As<Mma>(stmt);
  TileView acc = mma.acc, a = mma.a, b = mma.b;
  const bool acc_changed = MapView(mma.acc, map, &acc);
  const bool a_changed = MapView(mma.a, map, &a);
  const bool b_changed = MapView(mma.b, map, &b);
  if (!acc_changed && !a_changed && !b_changed) return stmt;
  return WithViews(mma, std::move(acc), std::move(a), std::move(b));
}

// MapExprs for any callable, so that the walks of this file call it without indirection.
template <typename Map>
Stmt MapOwnExprs(const Stmt& stmt, const Map& map) {
  switch (stmt->kind) {
    case StmtKind::kFor: {
      const For& loop = As<For>(stmt);
      Expr extent = map(loop.extent);
      if (extent == loop.extent) return stmt;
      return std::make_shared<For>(loop.var, std::move(extent), loop.loop_kind, loop.body, loop.marks);
    }
    case StmtKind::kIf: {
      const If& branch = As<If>(stmt);
      Expr condition = map(branch.condition);
      if (condition == branch.condition) return stmt;
      return std::make_shared<If>(std::move(condition), branch.then, branch.otherwise);
    }
    case StmtKind::kBlock: return MapBlock(stmt, map);
    case StmtKind::kLet: {
      const Let& let = As<Let>(stmt);
      Expr value = map(let.value);
      return value == let.value ? stmt : std::make_shared<Let>(let.var, std::move(value), let.body);
    }
    case StmtKind::kStore: {
      const Store& store = As<Store>(stmt);
      std::vector<Expr> indices;
      const bool moved = MapVector(store.indices, map, &indices);
      Expr value = map(store.value);
      if (!moved && value == store.value) return stmt;
      if (!moved) indices = store.indices;
      return std::make_shared<Store>(store.buffer, std::move(indices), std::move(value));
    }
    case StmtKind::kCombine: {
      const Combine& combine = As<Combine>(stmt);
      std::vector<Expr> indices;
      const bool moved = MapVector(combine.indices, map, &indices);
      Expr value = map(combine.value);
      if (!moved && value == combine.value) return stmt;
      if (!moved) indices = combine.indices;
      return std::make_shared<Combine>(combine.reduce, combine.buffer, std::move(indices), std::move(value));
    }
    case StmtKind::kMma: return MapMma(stmt, map);
    case StmtKind::kCopy: {
      const Copy& copy = As<Copy>(stmt);
      Expr barrier = copy.barrier ? map(copy.barrier) : nullptr;
      Expr cluster = copy.cluster ? map(copy.cluster) : nullptr;
      if (barrier == copy.barrier && cluster == copy.cluster) return stmt;
      return std::make_shared<Copy>(copy.body, copy.engine, std::move(barrier), std::move(cluster));
    }
    case StmtKind::kArrive: {
      const Arrive& arrive = As<Arrive>(stmt);
      Expr barrier = map(arrive.barrier), cluster = arrive.cluster ? map(arrive.cluster) : nullptr;
      if (barrier == arrive.barrier && cluster == arrive.cluster) return stmt;
      return std::make_shared<Arrive>(std::move(barrier), std::move(cluster), arrive.arrivals,
                                      arrive.expected_bytes, arrive.released);
    }
    case StmtKind::kWait: {
      const Wait& wait = As<Wait>(stmt);
      Expr barrier = map(wait.barrier), phase = map(wait.phase);
      if (barrier == wait.barrier && phase == wait.phase) return stmt;
      return std::make_shared<Wait>(std::move(barrier), std::move(phase));
    }
    case StmtKind::kSignal: {
      const Signal& signal = As<Signal>(stmt);
      Expr index = map(signal.index);
      return index == signal.index ? stmt : std::make_shared<Signal>(signal.flags, std::move(index));
    }
    case StmtKind::kAwait: {
      const Await& await = As<Await>(stmt);
      Expr index = map(await.index);
      return index == await.index ? stmt : std::make_shared<Await>(await.flags, std::move(index));
    }
    default: return stmt;
  }
}

bool UsesAnyVar(const ExprNode& expr, const VarMap& map) {
  if (expr.op == Op::kVar) return map.contains(expr.var.get());
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [&](const Expr& arg) { return UsesAnyVar(*arg, map); });
}

bool LoadsBuffer(const ExprNode& expr, const Buffer& buffer) {
  if (expr.op == Op::kLoad && expr.buffer == buffer) return true;
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [&](const Expr& arg) { return LoadsBuffer(*arg, buffer); });
}

// One ReplaceBuffer call: the buffers and the map of index vectors.
struct BufferReplacement {
  using Reindex = std::function<std::vector<Expr>(const std::vector<Expr>&)>;
  const Buffer& from;
  const Buffer& to;
  const Reindex& reindex;

  std::vector<Expr> Indices(const std::vector<Expr>& indices) const {
    return reindex ? reindex(indices) : indices;
  }

  Expr InExpr(const Expr& expr) const {
    if (!LoadsBuffer(*expr, from)) return expr;
    return Rewrite(expr, [this](const Expr& e) -> Expr {
      return e->op == Op::kLoad && e->buffer == from ? Load(to, Indices(e->args)) : nullptr;
    });
  }

  // The view over the new buffer; strides are of the old layout, so a view cannot follow a reindexing.
  TileView InView(const TileView& view) const {
    if (view.buffer != from) return view;
    MYCC_CHECK(!reindex) << "cannot reindex a tile view of " << from->name;
    TileView moved = view;
    moved.buffer = to;
    return moved;
  }

  Stmt InBlock(const Stmt& stmt) const {
    const Block& block = As<Block>(stmt);
    if (block.out != from && block.arg_value != from) return nullptr;
    auto changed = std::make_shared<Block>(block);
    if (block.out == from) {
      changed->out = to;
      changed->indices = Indices(block.indices);
    }
    if (block.arg_value == from) changed->arg_value = to;
    return changed;
  }

  // Replaces the statement's own uses, without its expressions; nullptr when there are none.
  Stmt InStmt(const Stmt& stmt) const {
    switch (stmt->kind) {
      case StmtKind::kAlloc:
        if (As<Alloc>(stmt).buffer != from) return nullptr;
        return std::make_shared<Alloc>(to, As<Alloc>(stmt).body);
      case StmtKind::kBlock: return InBlock(stmt);
      case StmtKind::kStore: {
        const Store& store = As<Store>(stmt);
        if (store.buffer != from) return nullptr;
        return std::make_shared<Store>(to, Indices(store.indices), store.value);
      }
      case StmtKind::kCombine: {
        const Combine& combine = As<Combine>(stmt);
        if (combine.buffer != from) return nullptr;
        return std::make_shared<Combine>(combine.reduce, to, Indices(combine.indices), combine.value);
      }
      case StmtKind::kSignal:
        if (As<Signal>(stmt).flags != from) return nullptr;
        return std::make_shared<Signal>(to, Indices({As<Signal>(stmt).index})[0]);
      case StmtKind::kAwait:
        if (As<Await>(stmt).flags != from) return nullptr;
        return std::make_shared<Await>(to, Indices({As<Await>(stmt).index})[0]);
      case StmtKind::kArrive: {
        const Arrive& arrive = As<Arrive>(stmt);
        if (std::count(arrive.released.begin(), arrive.released.end(), from) == 0) return nullptr;
        auto changed = std::make_shared<Arrive>(arrive);
        std::replace(changed->released.begin(), changed->released.end(), from, to);
        return changed;
      }
      case StmtKind::kMma: {
        const Mma& mma = As<Mma>(stmt);
        if (mma.acc.buffer != from && mma.a.buffer != from && mma.b.buffer != from) return nullptr;
        return WithViews(mma, InView(mma.acc), InView(mma.a), InView(mma.b));
      }
      default: return nullptr;
    }
  }
};

}  // namespace

Stmt MapExprs(const Stmt& stmt, const std::function<Expr(const Expr&)>& map) {
  return MapOwnExprs(stmt, map);
}

Stmt MapAllExprs(const Stmt& root, const std::function<Expr(const Expr&)>& map) {
  return RewriteStmts(root, [&map](const Stmt& stmt) { return MapOwnExprs(stmt, map); });
}

void ForEachExpr(const Stmt& stmt, const std::function<void(const Expr&)>& visit) {
  MapOwnExprs(stmt, [&visit](const Expr& expr) -> const Expr& {
    visit(expr);
    return expr;
  });
}

void ForEachBuffer(const Stmt& stmt, const std::function<void(const Buffer&)>& visit) {
  ForEachExpr(stmt, [&](const Expr& expr) {
    Visit(expr, [&](const ExprNode& e) {
      if (e.op == Op::kLoad) visit(e.buffer);
    });
  });
  switch (stmt->kind) {
    case StmtKind::kBlock:
      visit(As<Block>(stmt).out);
      if (As<Block>(stmt).arg_value) visit(As<Block>(stmt).arg_value);
      return;
    case StmtKind::kStore: return visit(As<Store>(stmt).buffer);
    case StmtKind::kCombine: return visit(As<Combine>(stmt).buffer);
    case StmtKind::kMma:
      for (const TileView* view : {&As<Mma>(stmt).acc, &As<Mma>(stmt).a, &As<Mma>(stmt).b})
        visit(view->buffer);
      return;
    case StmtKind::kSignal: return visit(As<Signal>(stmt).flags);
    case StmtKind::kAwait: return visit(As<Await>(stmt).flags);
    default: return;
  }
}

Stmt SubstituteVars(const Stmt& root, const VarMap& map) {
  const auto substitute = [&map](const Expr& expr) {
    return UsesAnyVar(*expr, map) ? Substitute(expr, map) : expr;
  };
  return RewriteStmts(root, [&](const Stmt& stmt) { return MapOwnExprs(stmt, substitute); });
}

Stmt ReplaceBuffer(const Stmt& root, const Buffer& from, const Buffer& to,
                   const std::function<std::vector<Expr>(const std::vector<Expr>&)>& reindex) {
  const BufferReplacement replacement{from, to, reindex};
  const auto in_expr = [&](const Expr& expr) { return replacement.InExpr(expr); };
  return RewriteStmts(root, [&](const Stmt& stmt) {
    const Stmt mapped = MapOwnExprs(stmt, in_expr);
    Stmt replaced = replacement.InStmt(mapped);
    return replaced ? replaced : mapped;
  });
}

}  // namespace mycc
