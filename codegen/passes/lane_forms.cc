// Decides what a CPU executes for loops of lanes: vectors, vectors of partial results, transposed tiles, or
// one iteration after the other (LaneForm); how wide the vectors are, and how many are straight-line code.
//
//   unroll u in 16: vector v in 16:   ->   unroll u in 16 turning tiles: vector v in 16, 16 lanes:
//     y[u, v] = x[v, u]                      y[u, v] = x[v, u]
#include <algorithm>

#include "codegen/ir/visit.h"
#include "codegen/passes/loop_facts.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// A vector loop of up to this number of vectors is straight-line code; a longer one is a loop over a few
// vectors, or over one if its code is long.
constexpr int64_t kMaxStraight = 8;
constexpr int kVectorsInLoop = 4;
constexpr int kLongCode = 24;  // expressions and statements

// The widest number type that lanes compute with, without indices and their comparisons, which adapt to it.
int WidestBytes(const Expr& expr) {
  if (expr->op == Op::kVar) return 1;
  const int own = IsNarrowFloat(expr->dtype) ? 4 : DTypeBytes(expr->dtype);
  if (expr->op == Op::kLoad) return own;
  if (expr->op == Op::kConst) return IsFloat(expr->dtype) ? own : 1;
  int widest = expr->dtype == DType::kBool ? 1 : own;
  for (const Expr& arg : expr->args) {
    if (arg->dtype == DType::kI64 && !HasLoad(arg)) continue;
    widest = std::max(widest, WidestBytes(arg));
  }
  return widest;
}

int CodeOf(const For& loop) {
  int nodes = 0;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    nodes += stmt->kind == StmtKind::kFor ? 1000 : 1;
    if (const Store* store = DynAs<Store>(stmt)) Visit(store->value, [&](const ExprNode&) { ++nodes; });
    return true;
  });
  return nodes;
}

LaneForm FormOf(const For& loop) {
  if (loop.loop_kind == LoopKind::kVector) {
    if (LaneReductionOf(loop) != nullptr) return LaneForm::kReduces;
    return CanWiden(loop) ? LaneForm::kPlain : LaneForm::kOneByOne;
  }
  if (TurnedGroupsOf(loop)) return LaneForm::kTurnsGroups;
  if (InterleavedStoreOf(loop)) return LaneForm::kInterleaves;
  return CrossReadsOf(loop) ? LaneForm::kTurns : LaneForm::kPlain;
}

// The unrolled loop around lanes; `lanes` where it decides their number.
struct LanesAround {
  LaneForm form = LaneForm::kPlain;
  int lanes = 0;
};

class LaneChooser {
 public:
  explicit LaneChooser(const Target& target) : target_(target) {}

  Stmt Chosen(const Stmt& stmt, bool in_lanes, const LanesAround& around = {}) const {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || ConstExtent(*loop) == 0 || ConstExtent(*loop) == 1)
      return MapChildren(stmt, [&](const Stmt& child) { return Chosen(child, in_lanes); });
    LoopMarks marks = loop->marks;
    LanesAround inner;
    if (loop->loop_kind == LoopKind::kVector) {
      // In other lanes it is scalar code, but where a single one of these is left over.
      marks.form = FormOf(*loop);
      marks.lanes = around.lanes > 0 ? around.lanes : LanesOf(*loop);
      marks.unroll_by = VectorsOfStep(*loop, marks, around.form);
      in_lanes |= marks.form != LaneForm::kOneByOne;
    } else if (around.form == LaneForm::kTurnsGroups) {
      inner = around;
    } else if (!in_lanes) {
      marks.form = inner.form = FormOf(*loop);
      if (const auto groups = TurnedGroupsOf(*loop))
        inner.lanes = VectorBytes(target_) / (DTypeBytes(groups->load->dtype) * groups->inner.group);
    }
    const Stmt inside = MapChildren(stmt, [&](const Stmt& child) { return Chosen(child, in_lanes, inner); });
    const bool same = marks.form == loop->marks.form && marks.lanes == loop->marks.lanes &&
                      marks.unroll_by == loop->marks.unroll_by;
    return same ? inside : As<For>(inside).Marked(marks);
  }

 private:
  int LanesOf(const For& loop) const {
    int widest = 1;
    VisitEach<Store>(loop.body, [&](const Store& store) {
      widest = std::max({widest, WidestBytes(store.value),
                         store.buffer->dtype == DType::kBool ? 1 : DTypeBytes(store.buffer->dtype)});
    });
    return std::max(VectorBytes(target_) / widest, 1);
  }

  // The vectors, or single iterations, of each step of a loop; 0: straight-line code.
  static int VectorsOfStep(const For& loop, const LoopMarks& marks, LaneForm around) {
    const bool one_by_one = marks.form == LaneForm::kOneByOne;
    if (*ConstExtent(loop) / (one_by_one ? 1 : marks.lanes) <= kMaxStraight) return 0;
    if (around == LaneForm::kTurns || around == LaneForm::kTurnsGroups) return 0;
    const bool plain = marks.form == LaneForm::kPlain && around == LaneForm::kPlain;
    if (plain && IndexesAccumulator(loop)) return 0;
    return one_by_one || CodeOf(loop) > kLongCode ? 1 : kVectorsInLoop;
  }

  const Target& target_;
};

}  // namespace

Stmt ChooseLaneForms(const Stmt& body, const Target& target) {
  return LaneChooser(target).Chosen(body, /*in_lanes=*/false);
}

}  // namespace mycc
