#include "tests/perf/planted/edit.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/match.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "tests/perf/planted/judge.h"

namespace mycc::planted {
namespace {

void Walk(const Stmt& stmt, std::vector<Stmt>* around, std::unordered_set<const StmtNode*>* seen,
          const std::function<bool(const Place&)>& wanted, std::vector<Place>* places) {
  Place place{stmt, *around};
  if (seen->insert(stmt.get()).second && wanted(place)) places->push_back(place);
  around->push_back(stmt);
  for (const Stmt& child : Children(stmt)) Walk(child, around, seen, wanted, places);
  around->pop_back();
}

Stmt Replaced(const Stmt& root, const StmtNode* at, const Stmt& by) {
  if (root.get() == at) return by;
  return MapChildren(root, [&](const Stmt& child) { return Replaced(child, at, by); });
}

// Probes store here, in vain.
const Buffer& Trap() {
  static const Buffer& trap = *new Buffer(MakeBuffer("trap", DType::kI32, {1}));
  return trap;
}

// Copies are nests of loops around one store: as such they can hold a probe.
Stmt WithoutCopies(const Stmt& root, const StmtNode* at) {
  return RewriteStmts(root, [&](const Stmt& stmt) -> Stmt {
    if (stmt->kind != StmtKind::kCopy) return nullptr;
    bool holds = false;
    VisitStmts(stmt, [&](const Stmt& s) {
      holds |= s.get() == at;
      return !holds;
    });
    return holds ? As<Copy>(stmt).body : nullptr;
  });
}

}  // namespace

bool HasVariable(const Expr& expr) {
  bool has = false;
  Visit(expr, [&has](const ExprNode& node) { has |= node.op == Op::kVar; });
  return has;
}

bool IsParam(const Kernel& kernel, const Buffer& buffer, bool output) {
  const auto& params = kernel.code.kernel.params;
  return std::ranges::any_of(params, [&](const Param& param) {
    return param.buffer == buffer && (param.kind == ParamKind::kOutput) == output;
  });
}

const For* Place::LoopOf(const VarNode* var) const {
  for (const Stmt& stmt : around) {
    const For* loop = DynAs<For>(stmt);
    if (loop != nullptr && loop->var.get() == var) return loop;
  }
  return nullptr;
}

bool Place::Within(StmtKind kind) const {
  return std::ranges::any_of(around, [kind](const Stmt& stmt) { return stmt->kind == kind; });
}

std::vector<Place> PlacesOf(const Kernel& kernel, const std::function<bool(const Place&)>& wanted) {
  std::vector<Place> places;
  std::vector<Stmt> around;
  std::unordered_set<const StmtNode*> seen;
  for (const Stmt& body : {kernel.code.pack.body, kernel.code.kernel.body})
    Walk(body, &around, &seen, wanted, &places);
  return places;
}

std::vector<Place> PlacesOf(const Kernel& kernel, StmtKind kind) {
  return PlacesOf(kernel, [kind](const Place& place) { return place.stmt->kind == kind; });
}

std::vector<Place> Stores(const Kernel& kernel) {
  return PlacesOf(kernel, [](const Place& place) { return place.stmt->kind == StmtKind::kStore; });
}

LoweredFunction With(const Kernel& kernel, const Stmt& at, const Stmt& by) {
  const Stmt other = by != nullptr ? by : std::make_shared<Seq>(std::vector<Stmt>{});
  LoweredFunction code = kernel.code;
  code.kernel.body = Replaced(code.kernel.body, at.get(), other);
  code.pack.body = Replaced(code.pack.body, at.get(), other);
  return code;
}

Fault FaultAt(const Kernel& kernel, const Stmt& at, const Stmt& by) {
  return {StmtName(at), With(kernel, at, by)};
}

bool IsReached(const Kernel& kernel, const Stmt& at, const Expr& condition) {
  LoweredFunction code = kernel.code;
  const Stmt trap = std::make_shared<Store>(Trap(), std::vector<Expr>{IntConst(1)}, IntConst(0, DType::kI32));
  const Stmt probe = MakeSeq({std::make_shared<If>(condition, trap), at});
  for (Stmt* const body : {&code.kernel.body, &code.pack.body})
    *body = Replaced(WithoutCopies(*body, at.get()), at.get(), probe);
  Function whole = WholeOf(code);
  whole.body = std::make_shared<Alloc>(Trap(), whole.body);
  const auto outputs = RunCode(kernel, whole, 0);
  return absl::StrContains(std::string(outputs.status().message()), "trap[1] is out of range");
}

Stmt LoopLike(const For& loop, int64_t extent) {
  const Var own = MakeVar(loop.var->name, std::max(extent, loop.var->extent));
  return loop.With({.var = own,
                    .extent = IntConst(extent),
                    .body = SubstituteVars(loop.body, VarMap{{loop.var.get(), VarRef(own)}})});
}

Stmt StoreWith(const Store& store, const ExprNode* at, const Expr& by) {
  const auto replaced = [&](const Expr& expr) {
    return Rewrite(expr, [&](const Expr& e) -> Expr { return e.get() == at ? by : nullptr; });
  };
  std::vector<Expr> indices;
  for (const Expr& index : store.indices) indices.push_back(replaced(index));
  return std::make_shared<Store>(store.buffer, std::move(indices), replaced(store.value));
}

std::vector<const ExprNode*> NodesOf(const Expr& expr, const std::function<bool(const ExprNode&)>& wanted) {
  std::vector<const ExprNode*> nodes;
  Visit(expr, [&](const ExprNode& node) {
    if (wanted(node) && std::ranges::find(nodes, &node) == nodes.end()) nodes.push_back(&node);
  });
  return nodes;
}

namespace {

Expr Both(const Expr& a, const Expr& b) {
  int64_t known = 0;
  if (IsConstInt(a, &known) && known != 0) return b;
  return IsConstInt(b, &known) && known != 0 ? a : MakeBinary(Op::kAnd, a, b);
}

bool Holds(const Expr& expr, const ExprNode* node) {
  bool holds = false;
  Visit(expr, [&](const ExprNode& e) { holds |= &e == node; });
  return holds;
}

}  // namespace

Expr TakenWhere(const Expr& value, const ExprNode* node) {
  if (value.get() == node) return BoolConst(true);
  for (size_t i = 0; i < value->args.size(); ++i) {
    if (!Holds(value->args[i], node)) continue;
    const Expr inside = TakenWhere(value->args[i], node);
    if (value->op != Op::kSelect || i == 0) return inside;
    return Both(i == 1 ? value->args[0] : MakeUnary(Op::kNot, value->args[0]), inside);
  }
  return BoolConst(true);
}

Expr ReadsWhere(const Expr& value) {
  Expr reads = BoolConst(true);
  Visit(value, [&reads](const ExprNode& node) {
    if (node.op == Op::kSelect && node.args[2]->op == Op::kConst) reads = Both(node.args[0], reads);
  });
  return reads;
}

}  // namespace mycc::planted
