// Replaces loops over tiles in the registers of tensor-core threads by loops over the threads and registers
// of the instruction's layout: each thread initializes, computes and stores the elements that it holds.
//
//   for i in 128: for j in 256: y[i, j] = f(acc[i, j])
//     ->
//   thread g in 2: thread w in 4: thread r in 8: thread c in 4:
//     unroll t, unroll n in 32, unroll h in 2, vector e in 2:
//       y[i, j] = f(acc[i, j])   with i = g*64 + w*16 + h*8 + r,  j = n*8 + c*2 + e
//
// A reduction over the columns, m[i] max= acc[i, j], is carried by the threads c that share the row: each
// reduces its own columns, and they combine their results as those of all reductions over thread loops. A
// nest over vectors of rows alone runs in the same threads: all threads c compute the same values.
//
// Sums that are set to zero just before a product are begun by the product, where the instruction can.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/fragment_layouts.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// The stores to laid-out tiles that may be executed for all elements of the tile, whatever the conditions
// around them: beyond the edge of a tensor a tile's elements are never used, but threads hold them, and
// computing them costs less than a condition for each. Without its guard such a store fills elements that are
// undefined otherwise: it is the only store to its tile but for updates of what it stored, and next to the
// tile's allocation; its value depends on tiles alone that are defined everywhere.
class EdgeStores {
 public:
  EdgeStores(const Stmt& body, const FragmentLayouts& layouts) : layouts_(layouts) {
    VisitEach<Store>(body, [&](const Store& store) {
      if (!IsUpdate(store)) ++stores_[store.buffer.get()];
    });
    Walk(body, body.get());
  }

  bool Has(const Store* store) const { return found_.contains(store); }

 private:
  // In the order of execution. Statements with the same `site` are executed equally often.
  void Walk(const Stmt& stmt, const StmtNode* site) {
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
      allocated_[alloc->buffer.get()] = site;
      return Walk(alloc->body, site);
    }
    if (layouts_.IsRoot(stmt)) {
      for (const FragmentNest& nest : NestsOf(stmt)) See(nest, site);
      return;
    }
    for (const Stmt& child : Children(stmt)) Walk(child, stmt->kind == StmtKind::kSeq ? site : child.get());
  }

  void See(const FragmentNest& nest, const StmtNode* site) {
    const Buffer& target = nest.store->buffer;
    bool reads_defined = true;
    ForEachLoad(nest.store->value,
                [&](const ExprNode& load) { reads_defined &= defined_.contains(load.buffer.get()); });
    const auto allocated = allocated_.find(target.get());
    const bool fills = layouts_.Find(target) != nullptr && allocated != allocated_.end() &&
                       allocated->second == site && !IsUpdate(*nest.store);
    if (!fills) return;
    if (!nest.conditions.empty()) {
      if (!reads_defined || stores_.at(target.get()) != 1) return;
      found_.insert(nest.store);
    }
    defined_.insert(target.get());
  }

  const FragmentLayouts& layouts_;
  std::unordered_map<const BufferNode*, int> stores_;                 // that do not update
  std::unordered_map<const BufferNode*, const StmtNode*> allocated_;  // the site
  BufferSet defined_;                                                 // laid-out tiles: all their elements
  std::unordered_set<const Store*> found_;
};

class FragmentNests {
 public:
  FragmentNests(const Stmt& body, const FragmentLayouts& layouts)
      : layouts_(layouts), beyond_edges_(body, layouts) {}

  const absl::Status& status() const { return status_; }

  Stmt Lower(const Stmt& stmt) {
    if (!status_.ok()) return stmt;
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
      const LaidBuffer* laid = layouts_.Find(alloc->buffer);
      if (laid != nullptr) return std::make_shared<Alloc>(laid->tile, Lower(alloc->body));
    }
    if (const Mma* mma = DynAs<Mma>(stmt)) return LowerProduct(*mma);
    if (const Seq* seq = DynAs<Seq>(stmt)) return LowerSeq(*seq);
    if (layouts_.IsRoot(stmt)) return LowerNests(stmt);
    CheckNoUse(stmt);
    return MapChildren(stmt, [&](const Stmt& child) { return Lower(child); });
  }

 private:
  // Products begin their sums instead of adding to zeros, where the instruction can.
  Stmt LowerSeq(const Seq& seq) {
    std::unordered_set<const StmtNode*> zeros;
    std::vector<Stmt> parts;
    for (size_t i = 0; i < seq.stmts.size(); ++i) {
      const Mma* mma = DynAs<Mma>(seq.stmts[i]);
      const StmtNode* zero = mma == nullptr ? nullptr : ZerosBefore(*mma, seq, i);
      if (zero != nullptr && zeros.insert(zero).second) first_.insert(mma);
    }
    for (const Stmt& part : seq.stmts) {
      if (zeros.count(part.get()) == 0) parts.push_back(Lower(part));
    }
    return MakeSeq(std::move(parts));
  }

  // The nest that sets the product's sums to zero, if nothing uses them before the product.
  const StmtNode* ZerosBefore(const Mma& mma, const Seq& seq, size_t at) const {
    if (mma.row() == nullptr || !mma.row()->begins_sums()) return nullptr;
    while (at-- > 0) {
      const Stmt& stmt = seq.stmts[at];
      if (AnyStmt(stmt, [&](const Stmt& s) { return Accesses(s, mma.acc.buffer); }))
        return SetsToZero(stmt, mma.acc.buffer) ? stmt.get() : nullptr;
    }
    return nullptr;
  }

  bool SetsToZero(const Stmt& stmt, const Buffer& sums) const {
    if (!layouts_.IsRoot(stmt)) return false;
    const std::vector<FragmentNest> nests = NestsOf(stmt);
    return nests.size() == 1 && nests[0].store->buffer == sums && nests[0].conditions.empty() &&
           IsZero(nests[0].store->value);
  }

  Stmt LowerProduct(const Mma& mma) const {
    auto product = std::make_shared<Mma>(mma);
    product->first = first_.count(&mma) != 0;
    for (TileView* view : {&product->acc, &product->a}) {
      const LaidBuffer* laid = layouts_.Find(view->buffer);
      if (laid != nullptr) *view = TileView{laid->tile, {IntConst(0), IntConst(0)}, laid->layout.columns, 1};
    }
    return product;
  }

  void CheckNoUse(const Stmt& stmt) {
    const auto check = [&](const Buffer& buffer) {
      if (layouts_.Find(buffer) != nullptr) status_.Update(RefuseFragment(buffer, kOutsideOfNest));
    };
    if (const Store* store = DynAs<Store>(stmt)) check(store->buffer);
    ForEachLoad(stmt, [&](const ExprNode& load) { check(load.buffer); });
  }

  Stmt LowerNests(const Stmt& root) {
    const std::vector<FragmentNest> nests = NestsOf(root);
    std::vector<Stmt> parts;
    bool touched = false;
    for (const FragmentNest& nest : nests) {
      const absl::StatusOr<std::optional<NestFrame>> frame = layouts_.FrameOf(nest);
      status_.Update(frame.status());
      if (!status_.ok()) return root;
      touched |= frame->has_value();
      parts.push_back(
          *frame ? Distribute(nest, **frame, nests.size() > 1)
                 : InLoops(nest.loops, Guarded(nest.conditions, std::make_shared<Store>(*nest.store))));
    }
    if (!touched) return root;
    status_.Update(CheckSeparable(nests));
    return MakeSeq(std::move(parts));
  }

  static Stmt Guarded(const std::vector<Expr>& conditions, Stmt body) {
    if (conditions.empty()) return body;
    return std::make_shared<If>(JoinConjunction(conditions), std::move(body));
  }

  Stmt Distribute(const FragmentNest& nest, const NestFrame& frame, bool is_one_of_several) {
    const LaidBuffer* target = layouts_.Find(nest.store->buffer);
    const bool reduces = ReductionOf(*nest.store) != ReduceOp::kNone,
               in_rows = target != nullptr && target->layout.columns == 0;
    if (in_rows && frame.layout.columns > 0 && !reduces) {
      status_.Update(RefuseFragment(nest.store->buffer,
                                    "it has one element for each row; expected a reduction of the columns"));
    }
    if (in_rows && frame.layout.columns == 0 && IsUpdate(*nest.store))
      return InTwoSteps(nest, frame, *target);
    Stmt body = ByThreads(nest, frame, Place(nest, frame, is_one_of_several));
    if (!reduces) return body;
    const absl::StatusOr<Stmt> split = SplitThreadReductions(body);
    status_.Update(split.status());
    return split.ok() ? *split : body;
  }

  FragmentLoops Place(const FragmentNest& nest, const NestFrame& frame, bool is_one_of_several) const {
    const For* named = is_one_of_several ? nest.loops.back() : nest.loops.front();
    // A pair of columns that is reduced into one element is no vector.
    bool across = !frame.rest.empty();
    for (const For* loop : frame.columns) across |= !UsesVar(nest.store->indices, loop->var.get());
    return MakeFragmentLoops(frame.layout, named->var->name, across ? LoopKind::kUnroll : LoopKind::kVector);
  }

  // All threads with a row compute its element, and none may do so from what another has stored.
  Stmt InTwoSteps(const FragmentNest& nest, const NestFrame& frame, const LaidBuffer& target) {
    const Buffer& to = target.tile;
    const Buffer next = MakeBuffer(absl::StrCat(to->name, ".next"), to->dtype, to->shape, Scope::kLocal);
    const std::string& name = nest.loops.front()->var->name;
    const FragmentLoops compute = MakeFragmentLoops(frame.layout, absl::StrCat(name, ".next")),
                        keep = MakeFragmentLoops(frame.layout, name);
    const Stmt first = ByThreads(nest, frame, compute, next);
    FragmentNest copy = nest;
    const Store moved(nest.store->buffer, nest.store->indices, nest.store->value);
    copy.store = &moved;
    const Stmt second = ByThreads(copy, frame, keep, nullptr, Load(next, {keep.row}));
    return std::make_shared<Alloc>(next, MakeSeq({first, second}));
  }

  // The nest over threads and registers; with a buffer in place of the one it stores to, or a value.
  Stmt ByThreads(const FragmentNest& nest, const NestFrame& frame, const FragmentLoops& fragment,
                 const Buffer& instead = nullptr, const Expr& value = nullptr) const {
    VarMap values = ValuesAt(frame.rows, fragment.row);
    values.merge(ValuesAt(frame.columns, fragment.column));
    const auto map = [&](const Expr& e) { return Simplify(Substitute(OnTiles(e, fragment), values)); };
    const LaidBuffer* target = layouts_.Find(nest.store->buffer);
    std::vector<Expr> indices, conditions;
    if (target != nullptr) {
      indices = PlaceIn(*target, fragment);
    } else {
      for (const Expr& index : nest.store->indices) indices.push_back(map(index));
    }
    for (const Expr& condition : GuardsOf(nest, frame)) conditions.push_back(map(condition));
    // One of the threads that have the same row stores to memory.
    if (target == nullptr && fragment.copy)
      conditions.push_back(MakeBinary(Op::kEq, fragment.copy, IntConst(0)));
    Expr stored = value ? value : map(nest.store->value);
    if (layouts_.IsOperand(nest.store->buffer) && !conditions.empty()) {
      // A product reads elements beyond an edge, too: as zeros, like those of staged tiles.
      stored = Simplify(MakeSelect(JoinConjunction(conditions), stored, ZeroOf(stored->dtype)));
      conditions.clear();
    }
    Stmt body = std::make_shared<Store>(instead  ? instead
                                        : target ? target->tile
                                                 : nest.store->buffer,
                                        std::move(indices), std::move(stored));
    return MakeNest(fragment.loops, InLoops(frame.rest, Guarded(conditions, std::move(body))));
  }

  // The conditions that are needed. An operand needs those on its columns: what lies beyond them would be
  // multiplied by the zeros of the other operand, and may be infinite.
  std::vector<Expr> GuardsOf(const FragmentNest& nest, const NestFrame& frame) const {
    if (!beyond_edges_.Has(nest.store)) return nest.conditions;
    if (!layouts_.IsOperand(nest.store->buffer)) return {};
    std::vector<Expr> needed = nest.conditions;
    std::erase_if(needed, [&](const Expr& condition) {
      return std::ranges::none_of(frame.columns,
                                  [&](const For* loop) { return UsesVar(condition, loop->var.get()); });
    });
    return needed;
  }

  static std::vector<Expr> PlaceIn(const LaidBuffer& laid, const FragmentLoops& fragment) {
    if (laid.layout.columns == 0) return {fragment.row};
    return {fragment.row, fragment.column};
  }

  Expr OnTiles(const Expr& expr, const FragmentLoops& fragment) const {
    return Rewrite(expr, [&](const Expr& e) -> Expr {
      const LaidBuffer* laid = e->op == Op::kLoad ? layouts_.Find(e->buffer) : nullptr;
      return laid == nullptr ? nullptr : Load(laid->tile, PlaceIn(*laid, fragment));
    });
  }

  const FragmentLayouts& layouts_;
  const EdgeStores beyond_edges_;
  std::unordered_set<const Mma*> first_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Stmt> FragmentLoopsOf(const Stmt& body, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const FragmentLayouts layouts, FragmentLayouts::Of(body, target));
  if (layouts.empty()) return body;
  FragmentNests nests(body, layouts);
  Stmt result = nests.Lower(body);
  if (!nests.status().ok()) return nests.status();
  return result;
}

}  // namespace mycc
