#include "codegen/ir/stmt_exprs.h"

#include <algorithm>
#include <initializer_list>
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
  for (size_t i = 0; i < block.more.size(); ++i) {
    Expr part = map(block.more[i].value);
    if (part != block.more[i].value) edit().more[i].value = std::move(part);
  }
  return changed ? Stmt(std::move(changed)) : stmt;
}

template <typename Map>
Stmt MapMma(const Stmt& stmt, const Map& map) {
  const Mma& mma = As<Mma>(stmt);
  TileView acc = mma.acc, a = mma.a, b = mma.b;
  bool changes = MapVector(mma.acc.indices, map, &acc.indices);
  changes |= MapVector(mma.a.indices, map, &a.indices);
  changes |= MapVector(mma.b.indices, map, &b.indices);
  if (!changes) return stmt;
  return Changed(mma, [&](Mma* changed) {
    changed->acc = std::move(acc);
    changed->a = std::move(a);
    changed->b = std::move(b);
  });
}

template <typename Map>
Stmt MapVectors(const Stmt& stmt, const Map& map) {
  std::vector<VectorMove> loads = As<Vectors>(stmt).loads, stores = As<Vectors>(stmt).stores;
  bool changed = false;
  for (std::vector<VectorMove>* moves : {&loads, &stores}) {
    for (VectorMove& move : *moves) {
      changed |= MapVector(move.indices, map, &move.indices);
      changed |= MapVector(move.conditions, map, &move.conditions);
    }
  }
  if (!changed) return stmt;
  return std::make_shared<Vectors>(std::move(loads), As<Vectors>(stmt).loop, std::move(stores),
                                   As<Vectors>(stmt).by_one);
}

// Maps expressions that are members of the statement; null ones stay.
template <typename T, typename Map>
Stmt MapMembers(const Stmt& stmt, const Map& map, std::initializer_list<Expr T::*> members,
                std::initializer_list<std::vector<Expr> T::*> lists = {}) {
  std::shared_ptr<T> changed;
  const auto edit = [&]() -> T& {
    if (!changed) changed = std::make_shared<T>(As<T>(stmt));
    return *changed;
  };
  for (std::vector<Expr> T::*list : lists) {
    std::vector<Expr> mapped;
    if (MapVector(As<T>(stmt).*list, map, &mapped)) edit().*list = std::move(mapped);
  }
  for (Expr T::*member : members) {
    const Expr& expr = As<T>(stmt).*member;
    if (!expr) continue;
    Expr mapped = map(expr);
    if (mapped != expr) edit().*member = std::move(mapped);
  }
  return changed ? Stmt(std::move(changed)) : stmt;
}

// Maps the expression of each part of a list.
template <typename T, typename Part, typename Map>
Stmt MapParts(const Stmt& stmt, const Map& map, std::vector<Part> T::*list, Expr Part::*member) {
  std::vector<Part> parts = As<T>(stmt).*list;
  bool changes = false;
  for (Part& part : parts) {
    Expr mapped = map(part.*member);
    changes |= mapped != part.*member;
    part.*member = std::move(mapped);
  }
  if (!changes) return stmt;
  return Changed(As<T>(stmt), [&](T* changed) { changed->*list = std::move(parts); });
}

template <typename Map>
Stmt MapCombine(const Stmt& stmt, const Map& map) {
  return MapParts(MapMembers<Combine>(stmt, map, {&Combine::value, &Combine::condition}, {&Combine::indices}),
                  map, &Combine::more, &Accumulator::value);
}

template <typename Map>
Stmt MapStore(const Stmt& stmt, const Map& map) {
  return MapParts(MapMembers<Store>(stmt, map, {&Store::value}, {&Store::indices, &Store::turned}), map,
                  &Store::fetches, &ReadAhead::load);
}

template <typename Map>
Stmt MapTileMove(const Stmt& stmt, const Map& map) {
  std::vector<Expr> indices;
  if (!MapVector(As<TileMove>(stmt).view.indices, map, &indices)) return stmt;
  return Changed(As<TileMove>(stmt), [&](TileMove* changed) { changed->view.indices = std::move(indices); });
}

// MapExprs for any callable, so that the walks of this file call it without indirection.
template <typename Map>
Stmt MapOwnExprs(const Stmt& stmt, const Map& map) {
  switch (stmt->kind) {
    case StmtKind::kFor: return MapMembers<For>(stmt, map, {&For::extent});
    case StmtKind::kIf: return MapMembers<If>(stmt, map, {&If::condition});
    case StmtKind::kLet: return MapMembers<Let>(stmt, map, {&Let::value});
    case StmtKind::kBlock: return MapBlock(stmt, map);
    case StmtKind::kStore: return MapStore(stmt, map);
    case StmtKind::kCombine: return MapCombine(stmt, map);
    case StmtKind::kMma: return MapMma(stmt, map);
    case StmtKind::kCopy: return MapMembers<Copy>(stmt, map, {&Copy::barrier, &Copy::cluster});
    case StmtKind::kVectors: return MapVectors(stmt, map);
    case StmtKind::kTileMove: return MapTileMove(stmt, map);
    case StmtKind::kArrive: return MapMembers<Arrive>(stmt, map, {&Arrive::barrier, &Arrive::cluster});
    case StmtKind::kWait: return MapMembers<Wait>(stmt, map, {&Wait::barrier, &Wait::phase});
    case StmtKind::kSignal: return MapMembers<Signal>(stmt, map, {&Signal::index});
    case StmtKind::kAwait: return MapMembers<Await>(stmt, map, {&Await::index});
    default: return stmt;
  }
}

bool UsesKeyOf(const Expr& expr, const VarMap& map) {
  return AnyExpr(expr, [&](const ExprNode& e) { return e.op == Op::kVar && map.contains(e.var.get()); });
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
    if (!Loads(expr, from)) return expr;
    return Rewrite(expr, [this](const Expr& e) -> Expr {
      return e->op == Op::kLoad && e->buffer == from ? Load(to, Indices(e->args)) : nullptr;
    });
  }

  // The view over the new buffer. Its strides are those of the old one's dimensions.
  TileView InView(const TileView& view) const {
    if (view.buffer != from) return view;
    MYCC_CHECK(to->rank() >= from->rank() &&
               std::equal(from->shape.rbegin(), from->shape.rend(), to->shape.rbegin()))
        << "a tile view of " << from->name << " has other strides in " << to->name;
    TileView moved = view;
    moved.buffer = to;
    moved.indices = Indices(moved.indices);
    return moved;
  }

  // A tensor with its indices.
  template <typename T>
  Stmt InAccess(const Stmt& stmt, Buffer T::*buffer, std::vector<Expr> T::*indices) const {
    if (As<T>(stmt).*buffer != from) return nullptr;
    return Changed(As<T>(stmt), [&](T* changed) {
      changed->*buffer = to;
      changed->*indices = Indices(changed->*indices);
    });
  }
  // A Block or Combine with the accumulators of its tuple.
  template <typename T>
  Stmt InAccumulators(const Stmt& stmt, Buffer T::*first) const {
    const Stmt moved = InAccess(stmt, first, &T::indices);
    bool found = moved != nullptr;
    const Stmt changed = Changed(As<T>(found ? moved : stmt), [&](T* reduction) {
      for (Accumulator& accumulator : reduction->more) {
        if (accumulator.buffer != from) continue;
        accumulator.buffer = to;
        found = true;
      }
    });
    return found ? changed : nullptr;
  }
  template <typename T>
  Stmt InList(const Stmt& stmt, std::vector<Buffer> T::*list) const {
    const std::vector<Buffer>& buffers = As<T>(stmt).*list;
    if (std::count(buffers.begin(), buffers.end(), from) == 0) return nullptr;
    return Changed(As<T>(stmt), [&](T* changed) {
      std::replace((changed->*list).begin(), (changed->*list).end(), from, to);
    });
  }
  template <typename T>
  Stmt InFlag(const Stmt& stmt) const {
    if (As<T>(stmt).flags != from) return nullptr;
    return std::make_shared<T>(to, Indices({As<T>(stmt).index})[0]);
  }

  // Replaces the statement's own uses, without its expressions; nullptr when there are none.
  Stmt InStmt(const Stmt& stmt) const {
    switch (stmt->kind) {
      case StmtKind::kAlloc:
        if (As<Alloc>(stmt).buffer != from) return nullptr;
        return Changed(As<Alloc>(stmt), [&](Alloc* alloc) { alloc->buffer = to; });
      case StmtKind::kBlock: return InAccumulators(stmt, &Block::out);
      case StmtKind::kStore: return InAccess(stmt, &Store::buffer, &Store::indices);
      case StmtKind::kCombine: return InAccumulators(stmt, &Combine::buffer);
      case StmtKind::kVectors: {
        bool found = false;
        Stmt changed = Changed(As<Vectors>(stmt), [&](Vectors* vectors) {
          for (std::vector<VectorMove>* moves : {&vectors->loads, &vectors->stores}) {
            for (VectorMove& move : *moves) {
              if (move.tensor != from) continue;
              move.tensor = to;
              move.indices = Indices(move.indices);
              found = true;
            }
          }
        });
        return found ? changed : nullptr;
      }
      case StmtKind::kSignal: return InFlag<Signal>(stmt);
      case StmtKind::kAwait: return InFlag<Await>(stmt);
      case StmtKind::kArrive: return InList(stmt, &Arrive::released);
      case StmtKind::kBypass: return InList(stmt, &Bypass::outputs);
      case StmtKind::kWaitProducts: return InList(stmt, &WaitProducts::sums);
      case StmtKind::kTileMove:
        if (As<TileMove>(stmt).view.buffer != from) return nullptr;
        return Changed(As<TileMove>(stmt), [&](TileMove* moved) { moved->view = InView(moved->view); });
      case StmtKind::kMma: {
        const Mma& mma = As<Mma>(stmt);
        if (mma.acc.buffer != from && mma.a.buffer != from && mma.b.buffer != from) return nullptr;
        return Changed(mma, [&](Mma* changed) {
          for (TileView* view : {&changed->acc, &changed->a, &changed->b}) *view = InView(*view);
        });
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

void ForEachLoad(const Stmt& stmt, const std::function<void(const ExprNode&)>& visit) {
  ForEachExpr(stmt, [&](const Expr& expr) { ForEachLoad(expr, visit); });
}

void ForEachBuffer(const Stmt& stmt, const std::function<void(const Buffer&)>& visit) {
  ForEachLoad(stmt, [&](const ExprNode& load) { visit(load.buffer); });
  switch (stmt->kind) {
    case StmtKind::kBlock:
      visit(As<Block>(stmt).out);
      for (const Accumulator& accumulator : As<Block>(stmt).more) visit(accumulator.buffer);
      return;
    case StmtKind::kStore: return visit(As<Store>(stmt).buffer);
    case StmtKind::kCombine: return As<Combine>(stmt).ForEachBuffer(visit);
    case StmtKind::kMma:
      for (const TileView* view : {&As<Mma>(stmt).acc, &As<Mma>(stmt).a, &As<Mma>(stmt).b})
        visit(view->buffer);
      return;
    case StmtKind::kVectors:
      for (const VectorMove& move : As<Vectors>(stmt).loads) visit(move.tensor);
      for (const VectorMove& move : As<Vectors>(stmt).stores) visit(move.tensor);
      return;
    case StmtKind::kBypass:
      for (const Buffer& output : As<Bypass>(stmt).outputs) visit(output);
      return;
    case StmtKind::kWaitProducts:
      for (const Buffer& sums : As<WaitProducts>(stmt).sums) visit(sums);
      return;
    case StmtKind::kTileMove: return visit(As<TileMove>(stmt).view.buffer);
    case StmtKind::kSignal: return visit(As<Signal>(stmt).flags);
    case StmtKind::kAwait: return visit(As<Await>(stmt).flags);
    default: return;
  }
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
  const auto substitute = [&map](const Expr& expr) {
    return UsesKeyOf(expr, map) ? Substitute(expr, map) : expr;
  };
  return RewriteStmts(root, [&](const Stmt& stmt) { return MapOwnExprs(stmt, substitute); });
}

Stmt SubstituteSimplified(const Stmt& stmt, const VarMap& map) {
  return MapAllExprs(
      stmt, [&](const Expr& expr) { return UsesKeyOf(expr, map) ? Simplify(Substitute(expr, map)) : expr; });
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

Stmt CopyWithSuffix(const Stmt& stmt, const std::string& suffix) {
  VarMap renamed;
  std::vector<Buffer> buffers;
  VisitStmts(stmt, [&](const Stmt& s) {
    const For* loop = DynAs<For>(s);
    const Let* let = DynAs<Let>(s);
    if (loop != nullptr || let != nullptr) {
      const Var& var = loop != nullptr ? loop->var : let->var;
      renamed[var.get()] = VarRef(MakeVar(absl::StrCat(var->name, suffix), var->extent));
    }
    if (const Alloc* alloc = DynAs<Alloc>(s)) buffers.push_back(alloc->buffer);
    return true;
  });
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
