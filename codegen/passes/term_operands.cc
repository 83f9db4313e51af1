#include "codegen/passes/term_operands.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Threads with fewer sums have more warps beside them, which hide the same latency (H100, 2048^3: 374 us with
// 64 sums and operands ahead, 370 without).
constexpr int64_t kFewestSums = 128;
constexpr int64_t kMostOperands = 32;  // of one term, in a thread's registers

}  // namespace

std::optional<TermOperands> TermOperands::Of(const Stmt& nest, const std::vector<Buffer>& tiles) {
  TermOperands parts;
  Stmt inner;
  for (const For* loop : LoopsOfNest(nest, &inner)) {
    const bool is_thread = loop->loop_kind == LoopKind::kThread;
    if (!ConstExtent(*loop) || (is_thread && parts.terms_ != nullptr)) return std::nullopt;
    if (is_thread) {
      parts.threads_.push_back(loop);
    } else if (parts.terms_ == nullptr) {
      parts.terms_ = loop;
    } else {
      parts.inner_.push_back(loop);
    }
  }
  parts.store_ = DynAs<Store>(inner);
  const bool has_terms = parts.terms_ != nullptr && parts.terms_->loop_kind == LoopKind::kUnroll &&
                         parts.terms() % 2 == 0 && parts.terms() >= 4;
  if (!has_terms || parts.store_ == nullptr || ReductionOf(*parts.store_) != ReduceOp::kSum ||
      IterationsOf(parts.inner_) < kFewestSums) {
    return std::nullopt;
  }
  // A load under a condition may be outside of a tile where the condition does not hold.
  bool fits = true;
  Visit(parts.store_->value, [&](const ExprNode& e) {
    fits = fits && e.op != Op::kSelect;
    if (e.op == Op::kLoad && std::count(tiles.begin(), tiles.end(), e.buffer) > 0)
      fits = fits && parts.AddOperand(Load(e.buffer, e.args));
  });
  int64_t registers = 0;
  for (const Operand& operand : parts.operands_)
    registers += IterationsOf(operand.loops) / IterationsOf(parts.threads_);
  if (!fits || parts.operands_.empty() || registers > kMostOperands) return std::nullopt;
  return parts;
}

bool TermOperands::AddOperand(const Expr& load) {
  if (std::any_of(load->args.begin(), load->args.end(), HasLoad)) return false;
  const auto is_same = [&](const Operand& operand) { return StructurallyEqual(operand.load, load); };
  if (std::any_of(operands_.begin(), operands_.end(), is_same)) return true;
  Operand operand{load, nullptr, threads_};
  for (const For* loop : inner_) {
    if (UsesVar(load, loop->var.get())) operand.loops.push_back(loop);
  }
  std::vector<int64_t> shape = {2};
  for (const For* loop : operand.loops) shape.push_back(loop->var->extent);
  operand.registers = MakeBuffer(absl::StrCat(load->buffer->name, ".operands"), load->buffer->dtype,
                                 std::move(shape), Scope::kLocal);
  // An operand that differs for each sum is not used twice.
  const bool is_reused = operand.loops.size() < threads_.size() + inner_.size();
  operands_.push_back(std::move(operand));
  return is_reused;
}

std::vector<Expr> TermOperands::Place(const Operand& operand, const Expr& term) {
  std::vector<Expr> place = {Simplify(Mod(term, 2))};
  for (const For* loop : operand.loops) place.push_back(VarRef(loop->var));
  return place;
}

Stmt TermOperands::Loads(const Expr& term, const std::string& suffix) const {
  std::vector<Stmt> nests;
  for (const Operand& operand : operands_) {
    const Stmt load =
        std::make_shared<Store>(operand.registers, Place(operand, term),
                                Simplify(Substitute(operand.load, {{terms_->var.get(), term}})));
    nests.push_back(CopyWithSuffix(InLoops(operand.loops, load), suffix));
  }
  return MakeSeq(std::move(nests));
}

Stmt TermOperands::Products(const Expr& term, const std::string& suffix) const {
  const Expr value = Rewrite(store_->value, [&](const Expr& e) -> Expr {
    for (const Operand& operand : operands_) {
      if (e->op == Op::kLoad && StructurallyEqual(e, operand.load))
        return Load(operand.registers, Place(operand, term));
    }
    return nullptr;
  });
  std::vector<const For*> loops = threads_;
  loops.insert(loops.end(), inner_.begin(), inner_.end());
  const Stmt store = SubstituteSimplified(std::make_shared<Store>(store_->buffer, store_->indices, value),
                                          {{terms_->var.get(), term}});
  return CopyWithSuffix(InLoops(loops, store), suffix);
}

Stmt TermOperands::Around(Stmt body) const {
  for (const Operand& operand : operands_) body = std::make_shared<Alloc>(operand.registers, std::move(body));
  return body;
}

}  // namespace mycc
