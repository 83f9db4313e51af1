#include "codegen/ir/stmt_exprs.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

// Calls `visit` on each expression of the statement itself, in order.
template <typename Node, typename VisitFn>
void VisitExprs(Node& node, const VisitFn& visit) {
  const auto visit_all = [&](auto& exprs) {
    for (auto& expr : exprs) visit(expr);
  };
  const auto visit_if_any = [&](auto& expr) {
    if (expr) visit(expr);
  };
  const auto visit_moves = [&](auto& moves) {
    for (auto& move : moves) {
      visit_all(move.indices);
      visit_all(move.conditions);
    }
  };
  switch (node.kind) {
    case StmtKind::kFor: return visit(NodeAs<For>(node).extent);
    case StmtKind::kIf: return visit(NodeAs<If>(node).condition);
    case StmtKind::kLet: return visit(NodeAs<Let>(node).value);
    case StmtKind::kBlock: {
      auto& block = NodeAs<Block>(node);
      for (auto& iter : block.iters) visit(iter.binding);
      visit_all(block.indices);
      visit(block.value);
      for (auto& accumulator : block.more) visit(accumulator.value);
      return;
    }
    case StmtKind::kStore: {
      auto& store = NodeAs<Store>(node);
      visit_all(store.indices);
      visit_all(store.turned);
      visit(store.value);
      for (auto& fetch : store.fetches) visit(fetch.load);
      return;
    }
    case StmtKind::kCombine: {
      auto& combine = NodeAs<Combine>(node);
      visit_all(combine.indices);
      visit(combine.value);
      visit_if_any(combine.condition);
      for (auto& accumulator : combine.more) visit(accumulator.value);
      return;
    }
    case StmtKind::kMma:
      visit_all(NodeAs<Mma>(node).acc.indices);
      visit_all(NodeAs<Mma>(node).a.indices);
      return visit_all(NodeAs<Mma>(node).b.indices);
    case StmtKind::kCopy:
      visit_if_any(NodeAs<Copy>(node).barrier);
      return visit_if_any(NodeAs<Copy>(node).cluster);
    case StmtKind::kVectors:
      visit_moves(NodeAs<Vectors>(node).loads);
      return visit_moves(NodeAs<Vectors>(node).stores);
    case StmtKind::kTileMove: return visit_all(NodeAs<TileMove>(node).view.indices);
    case StmtKind::kArrive:
      visit(NodeAs<Arrive>(node).barrier);
      return visit_if_any(NodeAs<Arrive>(node).cluster);
    case StmtKind::kWait: visit(NodeAs<Wait>(node).barrier); return visit(NodeAs<Wait>(node).phase);
    case StmtKind::kSignal: return visit(NodeAs<Signal>(node).index);
    case StmtKind::kAwait: return visit(NodeAs<Await>(node).index);
    default: return;
  }
}

// MapExprs for any callable, so that the walks of this file call it without indirection.
template <typename Map>
Stmt MapOwnExprs(const Stmt& stmt, const Map& map) {
  const auto mapped = [&](const Expr& expr) {
    Expr result = map(expr);
    MYCC_CHECK(result) << "an expression has become nothing";
    return result;
  };
  size_t kept = 0;  // expressions before the first that changes
  Expr first;
  VisitExprs(*stmt, [&](const Expr& expr) {
    if (first) return;
    Expr result = mapped(expr);
    if (result == expr) {
      ++kept;
    } else {
      first = std::move(result);
    }
  });
  if (!first) return stmt;
  std::shared_ptr<StmtNode> changed = stmt->Clone();
  VisitExprs(*changed, [&](Expr& expr) {
    if (kept > 0) {
      --kept;
    } else {
      expr = first ? std::exchange(first, nullptr) : mapped(expr);
    }
  });
  return changed;
}

bool UsesKeyOf(const Expr& expr, const VarMap& map) {
  return AnyExpr(expr, [&](const ExprNode& e) { return e.op == Op::kVar && map.contains(e.var.get()); });
}

// Calls `visit` on each buffer that the statement itself names, with what says where in it, if something
// does: the indices of an element, the index of a flag, or the view.
template <typename Node, typename VisitFn>
void VisitBuffers(Node& node, const VisitFn& visit) {
  const auto visit_all = [&](auto& buffers) {
    for (auto& buffer : buffers) visit(buffer);
  };
  const auto visit_more = [&](auto& accumulators) {
    for (auto& accumulator : accumulators) visit(accumulator.buffer);
  };
  const auto visit_moves = [&](auto& moves) {
    for (auto& move : moves) visit(move.tensor, move.indices);
  };
  const auto visit_view = [&](auto& view) { visit(view.buffer, view); };
  switch (node.kind) {
    case StmtKind::kAlloc: return visit(NodeAs<Alloc>(node).buffer);
    case StmtKind::kBlock:
      visit(NodeAs<Block>(node).out, NodeAs<Block>(node).indices);
      return visit_more(NodeAs<Block>(node).more);
    case StmtKind::kStore: return visit(NodeAs<Store>(node).buffer, NodeAs<Store>(node).indices);
    case StmtKind::kCombine:
      visit(NodeAs<Combine>(node).buffer, NodeAs<Combine>(node).indices);
      return visit_more(NodeAs<Combine>(node).more);
    case StmtKind::kMma:
      visit_view(NodeAs<Mma>(node).acc);
      visit_view(NodeAs<Mma>(node).a);
      return visit_view(NodeAs<Mma>(node).b);
    case StmtKind::kVectors:
      visit_moves(NodeAs<Vectors>(node).loads);
      return visit_moves(NodeAs<Vectors>(node).stores);
    case StmtKind::kBypass: return visit_all(NodeAs<Bypass>(node).outputs);
    case StmtKind::kArrive: return visit_all(NodeAs<Arrive>(node).released);
    case StmtKind::kWaitProducts: return visit_all(NodeAs<WaitProducts>(node).sums);
    case StmtKind::kTileMove: return visit_view(NodeAs<TileMove>(node).view);
    case StmtKind::kSignal: return visit(NodeAs<Signal>(node).flags, NodeAs<Signal>(node).index);
    case StmtKind::kAwait: return visit(NodeAs<Await>(node).flags, NodeAs<Await>(node).index);
    default: return;
  }
}

}  // namespace

Stmt MapExprs(const Stmt& stmt, const std::function<Expr(const Expr&)>& map) {
  return MapOwnExprs(stmt, map);
}

Stmt MapAllExprs(const Stmt& root, const std::function<Expr(const Expr&)>& map) {
  return RewriteStmts(root, [&map](const Stmt& stmt) { return MapOwnExprs(stmt, map); });
}

void ForEachExpr(const Stmt& stmt, const std::function<void(const Expr&)>& visit) {
  VisitExprs(*stmt, visit);
}

void ForEachLoad(const Stmt& stmt, const std::function<void(const ExprNode&)>& visit) {
  ForEachExpr(stmt, [&](const Expr& expr) { ForEachLoad(expr, visit); });
}

void ForEachBuffer(const Stmt& stmt, const std::function<void(const Buffer&)>& visit) {
  ForEachLoad(stmt, [&](const ExprNode& load) { visit(load.buffer); });
  // These two name buffers, and access none.
  if (stmt->kind == StmtKind::kAlloc || stmt->kind == StmtKind::kArrive) return;
  VisitBuffers(*stmt, [&](const Buffer& buffer, const auto&...) { visit(buffer); });
}

BufferSet BuffersUnder(const Stmt& root) {
  BufferSet used;
  VisitStmts(root, [&](const Stmt& stmt) {
    ForEachBuffer(stmt, [&](const Buffer& buffer) { used.insert(buffer.get()); });
    return true;
  });
  return used;
}

bool UsesVar(const Stmt& stmt, const VarNode* var) {
  bool uses = false;
  ForEachExpr(stmt, [&](const Expr& expr) { uses = uses || UsesVar(expr, var); });
  return uses;
}

bool Accesses(const Stmt& stmt, const Buffer& buffer) {
  bool accesses = false;
  ForEachBuffer(stmt, [&](const Buffer& used) { accesses |= used == buffer; });
  return accesses;
}

Stmt SubstituteVars(const Stmt& root, const VarMap& map) {
  return MapAllExprs(root,
                     [&](const Expr& expr) { return UsesKeyOf(expr, map) ? Substitute(expr, map) : expr; });
}

Stmt SubstituteSimplified(const Stmt& stmt, const VarMap& map) {
  return MapAllExprs(
      stmt, [&](const Expr& expr) { return UsesKeyOf(expr, map) ? Simplify(Substitute(expr, map)) : expr; });
}

Stmt ReplaceBuffer(const Stmt& root, const Buffer& from, const Buffer& to,
                   const std::function<std::vector<Expr>(const std::vector<Expr>&)>& reindex) {
  const auto moved = [&](const std::vector<Expr>& indices) { return reindex ? reindex(indices) : indices; };
  const auto in_expr = [&](const Expr& expr) {
    if (!Loads(expr, from)) return expr;
    return Rewrite(
        expr, [&](const Expr& e) -> Expr { return IsLoadOf(e, from) ? Load(to, moved(e->args)) : nullptr; });
  };
  // A place is the indices of an element, the index of a flag, or a view, whose strides stay.
  const auto move = [&]<typename Place>(Place& place) {
    if constexpr (std::is_same_v<Place, TileView>) {
      MYCC_CHECK(to->rank() >= from->rank() &&
                 std::equal(from->shape.rbegin(), from->shape.rend(), to->shape.rbegin()))
          << "a tile view of " << from->name << " has other strides in " << to->name;
      place.indices = moved(place.indices);
    } else if constexpr (std::is_same_v<Place, Expr>) {
      place = moved({place})[0];
    } else {
      place = moved(place);
    }
  };
  return RewriteStmts(root, [&](const Stmt& stmt) -> Stmt {
    const Stmt mapped = MapOwnExprs(stmt, in_expr);
    bool found = false;
    VisitBuffers(*mapped, [&](const Buffer& buffer, const auto&...) { found |= buffer == from; });
    if (!found) return mapped;
    std::shared_ptr<StmtNode> changed = mapped->Clone();
    VisitBuffers(*changed, [&](Buffer& buffer, auto&... place) {
      if (buffer != from) return;
      (move(place), ...);
      buffer = to;
    });
    return changed;
  });
}

Stmt CopyWithSuffix(const Stmt& stmt, const std::string& suffix) {
  VarMap renamed;
  std::vector<Buffer> buffers;
  const auto rename = [&](const auto& of) {
    renamed[of.var.get()] = VarRef(MakeVar(absl::StrCat(of.var->name, suffix), of.var->extent));
  };
  VisitEach<For>(stmt, rename);
  VisitEach<Let>(stmt, rename);
  VisitEach<Alloc>(stmt, [&](const Alloc& alloc) { buffers.push_back(alloc.buffer); });
  if (renamed.empty() && buffers.empty()) return stmt;
  Stmt copy = SubstituteVars(stmt, renamed);
  copy = RewriteStmts(copy, [&](const Stmt& s) -> Stmt {
    if (const Let* let = DynAs<Let>(s))
      return std::make_shared<Let>(renamed.at(let->var.get())->var, let->value, let->body);
    const For* loop = DynAs<For>(s);
    if (loop == nullptr) return nullptr;
    return loop->With({.var = renamed.at(loop->var.get())->var});
  });
  for (const Buffer& buffer : buffers) copy = ReplaceBuffer(copy, buffer, WithSuffix(buffer, suffix));
  return copy;
}

}  // namespace mycc
