// Turns guards into loop structure.
//
//   for i in 4:                                    for i in 3:
//     for j in 8:                          ->        for j in 8: A
//       if i*8 + j < 30: A                         for j in 6: A        (i = 3)
//
// A serial, unrolled or vector loop is cut where a guard that also depends on loops inside it becomes always
// true or always false. Each iteration between the two becomes a separate copy, so that the loops inside get
// static extents. A parallel loop is not cut: its body branches between the parts. The number of copies is
// limited; other guards stay Ifs.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/condition_range.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// The number of statements that partitioning may add: for each original statement, and for the whole
// function.
constexpr int64_t kMaxGrowth = 24;
constexpr int64_t kMinBudget = 96;
// The largest number of undecided iterations that become separate copies.
constexpr int64_t kMaxSingles = 4;
// Conditions of selects cut only loops around few statements: elsewhere a mask or a branch is cheaper than a
// copy.
constexpr int64_t kMaxSelectLeaves = 3;

struct Piece {
  int64_t begin, end;
};

struct Condition {
  Expr expr;
  bool of_select;
};

// The number of stores and tile statements.
int64_t CountLeaves(const Stmt& root) {
  int64_t leaves = 0;
  ForEachStmt(root, [&](const Stmt& stmt) { leaves += WrittenBy(stmt) != nullptr; });
  return leaves;
}

// The conditions inside `body` by which a loop around it may be cut.
std::vector<Condition> ConditionsIn(const Stmt& body, bool selects) {
  std::vector<Expr> of_branches, of_selects;
  ForEachStmt(body, [&](const Stmt& stmt) {
    if (const If* branch = DynAs<If>(stmt)) SplitConjunction(branch->condition, &of_branches);
    const Store* store = selects ? DynAs<Store>(stmt) : nullptr;
    if (store == nullptr) return;
    Visit(store->value, [&](const ExprNode& e) {
      if (e.op == Op::kSelect) SplitConjunction(e.args[0], &of_selects);
    });
  });
  std::vector<Condition> conditions;
  conditions.reserve(of_branches.size() + of_selects.size());
  for (Expr& condition : of_branches) conditions.push_back({std::move(condition), false});
  for (Expr& condition : of_selects) conditions.push_back({std::move(condition), true});
  return conditions;
}

// The border of a window, where selects are undecided, is one piece: their conditions stay in it.
std::vector<Piece> PiecesOf(const ConditionRange& range, int64_t extent, bool of_select) {
  std::vector<Piece> pieces;
  const auto add = [&](int64_t begin, int64_t end) {
    if (begin < end) pieces.push_back({begin, end});
  };
  const auto add_between = [&](int64_t begin, int64_t end) {
    if (of_select || end - begin > kMaxSingles) return add(begin, end);
    for (int64_t v = begin; v < end; ++v) add(v, v + 1);
  };
  add(0, range.possible_begin);
  add_between(range.possible_begin, range.true_begin);
  add(range.true_begin, range.true_end);
  add_between(range.true_end, range.possible_end);
  add(range.possible_end, extent);
  return pieces;
}

class Partitioner {
 public:
  explicit Partitioner(const Stmt& body) : budget_(std::max(kMinBudget, kMaxGrowth * CountLeaves(body))) {}

  Stmt Visit(const Stmt& stmt) {
    if (IsLoopOfKind(stmt, LoopKind::kParallel)) return VisitParallel(stmt);
    const Stmt cut = stmt->kind == StmtKind::kFor ? Cut(As<For>(stmt)) : nullptr;
    return cut ? cut : MapChildren(stmt, [&](const Stmt& child) { return Visit(child); });
  }

 private:
  // One piece of a loop, for values [piece.begin, piece.end) of its variable: the piece's variable (null for
  // a single value), and the body over it.
  struct Part {
    Var var;
    int64_t begin;
    int64_t extent;
    Stmt body;
  };

  static Part MakePart(const Var& var, const Stmt& body, const Piece& piece) {
    Part part{nullptr, piece.begin, piece.end - piece.begin, nullptr};
    Expr value = IntConst(piece.begin);
    if (part.extent > 1) {
      part.var = MakeVar(var->name, part.extent);
      value = VarRef(part.var) + piece.begin;
    }
    part.body = CleanStmts(SubstituteSimplified(body, {{var.get(), value}}));
    return part;
  }

  // Null where nothing cuts the loop.
  Stmt Cut(const For& loop) {
    // A loop whose number of iterations is computed is cut as if it had all of them.
    const int64_t extent = ConstExtent(loop).value_or(loop.var->extent);
    const auto inner = LoopVarsUnder(loop.body);
    const bool selects = loop.loop_kind == LoopKind::kSerial && CountLeaves(loop.body) <= kMaxSelectLeaves;
    for (const auto& [condition, of_select] : ConditionsIn(loop.body, selects)) {
      const auto range = RangeOfCondition(condition, loop.var.get(), extent, inner);
      if (!range || !range->decides(extent)) continue;
      const std::vector<Piece> pieces = PiecesOf(*range, extent, of_select);
      if (pieces.size() == 1) continue;
      if (Stmt cut = CutFor(loop, pieces, *range, of_select && CountLeaves(loop.body) == 1)) return cut;
    }
    return nullptr;
  }

  // The iterations of a part that the loop has.
  static Expr IterationsOf(const Part& part, const For& loop) {
    const Expr all = IntConst(part.extent);
    if (ConstExtent(loop)) return all;
    const Expr rest = Simplify(loop.extent - part.begin);
    return Simplify(MakeBinary(Op::kMax, IntConst(0), MakeBinary(Op::kMin, rest, all)));
  }

  // The loop as a sequence of its pieces; null when the gain does not justify the copies. A condition over
  // this loop only (an If around a part of the body) is cut when only one piece remains, when lanes would be
  // masked, or when it is a border in a copy, whose interior then has no condition.
  Stmt CutFor(const For& loop, const std::vector<Piece>& pieces, const ConditionRange& range,
              bool is_border) {
    std::vector<Part> parts;
    int64_t leaves = 0;
    for (const Piece& piece : pieces) {
      Part part = MakePart(loop.var, loop.body, piece);
      if (IsEmpty(part.body)) continue;
      leaves += CountLeaves(part.body);
      parts.push_back(std::move(part));
    }
    const int64_t growth = leaves - CountLeaves(loop.body);
    const bool pays = range.uses_inner || is_border || loop.loop_kind == LoopKind::kVector;
    if (parts.size() > 1 && (!pays || growth > budget_)) return nullptr;
    budget_ -= std::max<int64_t>(growth, 0);
    std::vector<Stmt> cut;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      Stmt piece = part.body;
      if (part.var || !loop.marks.instruction.empty()) {
        const Var var = part.var ? part.var : MakeVar(loop.var->name, 1);
        piece = loop.With({.var = var, .extent = IterationsOf(part, loop), .body = std::move(piece)});
      } else if (!ConstExtent(loop)) {
        const Expr exists = MakeBinary(Op::kLt, IntConst(part.begin), loop.extent);
        piece = std::make_shared<If>(exists, std::move(piece));
      }
      if (i > 0) piece = CopyWithSuffix(piece, absl::StrCat(".p", i));
      cut.push_back(Visit(piece));
    }
    return MakeSeq(std::move(cut));
  }

  // Directly nested parallel loops are one index space: their variables are cut together inside the innermost
  // body.
  Stmt VisitParallel(const Stmt& stmt) {
    Stmt inner;
    const std::vector<const For*> chain = LoopsOfNest(stmt, &inner, LoopKind::kParallel);
    std::vector<Var> vars;
    for (const For* loop : chain) {
      if (ConstExtent(*loop) == loop->var->extent) vars.push_back(loop->var);
    }
    Stmt body = CutParallel(vars, inner);
    return body == inner ? stmt : InLoops(chain, std::move(body));
  }

  Stmt CutParallel(const std::vector<Var>& vars, const Stmt& body) {
    const auto inner = LoopVarsUnder(body);
    const bool selects = CountLeaves(body) <= kMaxSelectLeaves;
    for (size_t i = 0; i < vars.size(); ++i) {
      for (const auto& [condition, of_select] : ConditionsIn(body, selects)) {
        const auto range = RangeOfCondition(condition, vars[i].get(), vars[i]->extent, inner);
        if (!range || !range->uses_inner || !range->decides(vars[i]->extent)) continue;
        const std::vector<Piece> pieces = PiecesOf(*range, vars[i]->extent, of_select);
        if (pieces.size() == 1) continue;
        if (Stmt cut = ChoosePart(vars, i, body, pieces)) return cut;
      }
    }
    return Visit(body);
  }

  // Emits: if v < 3: body over [0, 3) else body at 3.
  Stmt ChoosePart(const std::vector<Var>& vars, size_t which, const Stmt& body,
                  const std::vector<Piece>& pieces) {
    const int64_t growth = CountLeaves(body) * static_cast<int64_t>(pieces.size() - 1);
    if (growth > budget_) return nullptr;
    budget_ -= growth;
    const Var& var = vars[which];
    Stmt choice;
    for (size_t i = pieces.size(); i-- > 0;) {
      Part part = MakePart(var, body, pieces[i]);
      std::vector<Var> rest = vars;
      const auto at = rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(which));
      if (part.var) rest.insert(at, part.var);
      Stmt arm = CutParallel(rest, part.body);
      if (part.var) arm = SubstituteVars(arm, {{part.var.get(), VarRef(var) - part.begin}});
      if (i > 0) arm = CopyWithSuffix(arm, absl::StrCat(".p", i));
      const Expr below = MakeBinary(Op::kLt, VarRef(var), IntConst(pieces[i].end));
      choice = choice ? std::make_shared<If>(below, arm, choice) : arm;
    }
    return choice;
  }

  int64_t budget_;
};

}  // namespace

Stmt PartitionLoops(const Stmt& body) { return Partitioner(body).Visit(body); }

}  // namespace mycc
