// Makes pipelines in which all threads copy (cp.async), for Ampere and for copies that the copy engine cannot
// execute. With s stages, the copies of the first s - 1 iterations come before the loop, and iteration i
// issues those of iteration i + s - 1.
//
// Ordinary arithmetic with many sums for each thread loads its operands one term ahead (TermOperands). So the
// loop waits for the next step's tiles before its last term, and the arithmetic has its operands on both
// sides of the barrier:
//
//   wait group; loads(0)                                               .first
//   for step: for k in 0 .. 4: loads(k + 1); products(k)               .early
//             copies of step + s - 1                                   .next
//             for k in 5 .. 6: loads(k + 1); products(k)               .late
//             wait group; loads(0) of step + 1; products(7)            .ahead, .last
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/pipeline_loops.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Threads with fewer sums have more warps beside them, which hide the same latency (H100, 2048^3: 374 us with
// 64 sums and operands ahead, 370 without).
constexpr int64_t kFewestSums = 128;
constexpr int64_t kMostOperands = 32;  // of one term, in a thread's registers

// The operands of ordinary arithmetic in registers: a nest that sums up products of elements in shared
// memory, taken apart into nests that load the operands of a term, and one that multiplies them. The operands
// of the next term can then be loaded while a term is multiplied, also where the next term is behind a
// barrier.
//
//   thread a: unroll k in 8: unroll i, vector j: acc[a,i,j] += s[k,a*16+i] * t[k,j]
//
//   loads(k):     thread a: unroll i: x[k%2,a,i] = s[k,a*16+i]
//                 thread a: vector j: y[k%2,a,j] = t[k,j]
//   products(k):  thread a: unroll i, vector j: acc[a,i,j] += x[k%2,a,i] * y[k%2,a,j]
//
// The same double buffering of fragments as in CUTLASS's SIMT products.
class TermOperands {
 public:
  // Nullopt where a thread has fewer than 128 sums, or needs more than 32 operands for a term; where the
  // number of terms is odd, or their loop is not unrolled; where the nest is more than loops around one
  // store, or loads under a condition.
  static std::optional<TermOperands> Of(const Stmt& nest, const std::vector<Buffer>& tiles) {
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
    const bool fits = !AnyExpr(parts.store_->value, [&](const ExprNode& e) {
      const bool is_operand = e.op == Op::kLoad && std::ranges::count(tiles, e.buffer) > 0;
      return e.op == Op::kSelect || (is_operand && !parts.AddOperand(Load(e.buffer, e.args)));
    });
    int64_t registers = 0;
    for (const Operand& operand : parts.operands_)
      registers += IterationsOf(operand.loops) / IterationsOf(parts.threads_);
    if (!fits || parts.operands_.empty() || registers > kMostOperands) return std::nullopt;
    return parts;
  }

  int64_t terms() const { return terms_->var->extent; }
  // Nests of their own, whose loops' names have the suffix. Loads reads the tiles, as the nest does.
  Stmt Loads(const Expr& term, const std::string& suffix) const {
    std::vector<Stmt> nests;
    for (const Operand& operand : operands_) {
      const Stmt load =
          std::make_shared<Store>(operand.registers, Place(operand, term),
                                  Simplify(Substitute(operand.load, {{terms_->var.get(), term}})));
      nests.push_back(CopyWithSuffix(InLoops(operand.loops, load), suffix));
    }
    return MakeSeq(std::move(nests));
  }

  Stmt Products(const Expr& term, const std::string& suffix) const {
    const Expr value = Rewrite(store_->value, [&](const Expr& e) -> Expr {
      for (const Operand& operand : operands_) {
        if (e->op == Op::kLoad && StructurallyEqual(e, operand.load))
          return Load(operand.registers, Place(operand, term));
      }
      return nullptr;
    });
    const Stmt store = SubstituteSimplified(std::make_shared<Store>(store_->buffer, store_->indices, value),
                                            {{terms_->var.get(), term}});
    return CopyWithSuffix(InLoops(threads_, InLoops(inner_, store)), suffix);
  }

  // The registers of two terms, around the loop over the steps.
  Stmt Around(Stmt body) const {
    for (const Operand& operand : operands_)
      body = std::make_shared<Alloc>(operand.registers, std::move(body));
    return body;
  }

 private:
  struct Operand {
    Expr load;
    Buffer registers;               // [term % 2, the loops]
    std::vector<const For*> loops;  // of threads, and those inside that the element depends on
  };

  bool AddOperand(const Expr& load) {
    if (std::ranges::any_of(load->args, HasLoad)) return false;
    const auto is_same = [&](const Operand& operand) { return StructurallyEqual(operand.load, load); };
    if (std::ranges::any_of(operands_, is_same)) return true;
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

  // The element of an operand that a term needs.
  static std::vector<Expr> Place(const Operand& operand, const Expr& term) {
    std::vector<Expr> place = {Simplify(Mod(term, 2))};
    for (const For* loop : operand.loops) place.push_back(VarRef(loop->var));
    return place;
  }

  std::vector<const For*> threads_, inner_;
  const For* terms_ = nullptr;
  const Store* store_ = nullptr;
  std::vector<Operand> operands_;
};

// Replaces the nest of serial loops that ends in the pipelined loop.
class ThreadsPipeline {
 public:
  ThreadsPipeline(std::vector<const For*> nest, LoopParts parts)
      : nest_(std::move(nest)),
        parts_(std::move(parts)),
        stages_(nest_.back()->marks.pipeline.stages),
        rings_(parts_.tiles, nest_.back()->marks.pipeline.stages) {}

  Stmt Build() const {
    const int64_t most = IterationsOf(nest_);
    // Only a loop alone may have a computed number of iterations (NestAround).
    const Expr total = ConstExtent(*nest_.back()) ? IntConst(most) : nest_.back()->extent;
    const std::string& name = nest_.back()->var->name;
    const Var step = MakeVar(absl::StrCat(name, ".step"), most);
    std::vector<Stmt> result;
    for (int64_t ahead = 0; ahead < stages_ - 1; ++ahead) {
      if (ahead < most) result.push_back(FirstCopies(ahead, total));
      result.push_back(std::make_shared<CommitGroup>());
    }
    if (const std::optional<TermOperands> operands = Operands(total)) {
      result.push_back(TermsAhead(*operands, step, total));
      result.push_back(std::make_shared<WaitGroup>(0));
      return rings_.Around(operands->Around(MakeSeq(result)));
    }
    const Peeled work = OnTensorCores() ? Peeled{nullptr, parts_.work} : PeelTerm(parts_.work);
    const auto now = [&](const Stmt& stmt) { return stmt ? InStep(stmt, VarRef(step)) : nullptr; };
    const Stmt first = work.first ? CopyWithSuffix(work.first, ".first") : nullptr;
    const Stmt body = MakeSeq({std::make_shared<WaitGroup>(stages_ - 2), now(first),
                               most >= stages_ ? CopiesAhead(VarRef(step), total) : nullptr,
                               std::make_shared<CommitGroup>(), now(work.rest)});
    result.push_back(std::make_shared<For>(step, total, LoopKind::kSerial, body));
    result.push_back(std::make_shared<WaitGroup>(0));
    return rings_.Around(MakeSeq(result));
  }

 private:
  // The work of one step, in its slot.
  Stmt InStep(const Stmt& work, const Expr& step) const {
    return rings_.In(SubstituteSimplified(work, ValuesAt(nest_, step)), Simplify(Mod(step, stages_)));
  }

  // The operands of ordinary arithmetic, where it may load them one term ahead: the last step does so for one
  // that does not exist, from a slot of zeros. There are steps enough that some copy while they multiply,
  // also for the step after.
  std::optional<TermOperands> Operands(const Expr& total) const {
    if (OnTensorCores() || !IsConstInt(total)) return std::nullopt;
    const bool is_alike = std::ranges::none_of(nest_, [&](const For* loop) {
      return AnyStmt(parts_.work, [&](const Stmt& stmt) { return UsesVar(stmt, loop->var.get()); });
    });
    if (!is_alike || IterationsOf(nest_) <= stages_) return std::nullopt;
    return TermOperands::Of(parts_.work, parts_.tiles);
  }

  Stmt TermsAhead(const TermOperands& operands, const Var& step, const Expr& total) const {
    const int64_t last = operands.terms() - 1;
    // Copies through registers end here and begin again (divide_copies): late enough that they have arrived,
    // early enough that the barrier does not wait for them.
    const int64_t copies = operands.terms() * 5 / 8;
    const auto terms = [&](int64_t from, int64_t to, const std::string& suffix) {
      const Var term = MakeVar("term" + suffix, to - from);
      const Expr number = VarRef(term) + from;
      const Stmt both = MakeSeq(
          {operands.Loads(Simplify(number + 1), suffix), operands.Products(Simplify(number), suffix)});
      return InStep(std::make_shared<For>(term, IntConst(to - from), LoopKind::kUnroll, both), VarRef(step));
    };
    const Stmt body = MakeSeq({terms(0, copies, ".early"), CopiesAhead(VarRef(step), total),
                               std::make_shared<CommitGroup>(), terms(copies, last, ".late"),
                               std::make_shared<WaitGroup>(stages_ - 2),
                               InStep(operands.Loads(IntConst(0), ".ahead"), VarRef(step) + 1),
                               operands.Products(IntConst(last), ".last")});
    return MakeSeq({std::make_shared<WaitGroup>(stages_ - 2),
                    InStep(operands.Loads(IntConst(0), ".first"), IntConst(0)),
                    std::make_shared<For>(step, total, LoopKind::kSerial, body)});
  }

  // Ordinary arithmetic, with its first term before the copies of the step: its reads from shared memory are
  // in flight while the copies are issued.
  struct Peeled {
    Stmt first;  // null where nothing is peeled
    Stmt rest;
  };

  // The first iteration of the unrolled loop inside a nest of thread loops, and the others; all of the nest
  // where the loop is not unrolled.
  static Peeled PeelTerm(const Stmt& nest) {
    const For* loop = DynAs<For>(nest);
    if (loop == nullptr) return {nullptr, nest};
    if (loop->loop_kind == LoopKind::kThread) {
      const Peeled parts = PeelTerm(loop->body);
      if (!parts.first) return {nullptr, nest};
      return {loop->With({.body = parts.first}), loop->With({.body = parts.rest})};
    }
    const std::optional<int64_t> extent = ConstExtent(*loop);
    if (loop->loop_kind != LoopKind::kUnroll || !extent || *extent < 2) return {nullptr, nest};
    const Var others = MakeVar(loop->var->name, *extent - 1);
    const Stmt rest = SubstituteSimplified(loop->body, {{loop->var.get(), VarRef(others) + 1}});
    return {SubstituteSimplified(loop->body, {{loop->var.get(), IntConst(0)}}),
            loop->With({.var = others, .extent = IntConst(*extent - 1), .body = rest})};
  }

  bool OnTensorCores() const { return Contains(parts_.work, StmtKind::kMma); }

  // A loop of computed length may have fewer iterations than slots. Copies of one that it does not have could
  // read outside of a tensor.
  Stmt FirstCopies(int64_t number, const Expr& total) const {
    const Stmt copies = Copies(IntConst(number), absl::StrCat(".ahead", number));
    if (IsConstInt(total)) return copies;
    return std::make_shared<If>(Simplify(MakeBinary(Op::kLt, IntConst(number), total)), copies);
  }

  // The copies of a later iteration. With tensor cores they are under a condition that the iteration exists.
  // With ordinary arithmetic they are unconditional, so that the compiler can interleave the two in
  // straight-line code; past the end zeros are copied into a slot whose values are not used. The condition
  // has the step alone on one side: NVRTC takes 15 times as long for a loop with two stages and `step + 1 <
  // total`, whose last iterations it takes apart, until the registers do not suffice.
  Stmt CopiesAhead(const Expr& step, const Expr& total) const {
    const Expr exists = Simplify(MakeBinary(Op::kLt, step, total - (stages_ - 1)));
    const Stmt copies = Copies(step + (stages_ - 1), ".next");
    if (OnTensorCores()) return std::make_shared<If>(exists, copies);
    return RewriteEach<Store>(copies, [&](const Store& store) {
      const bool selects = store.value->op == Op::kSelect;
      const Expr& element = selects ? store.value->args[1] : store.value;
      const Expr all = selects ? MakeBinary(Op::kAnd, exists, store.value->args[0]) : exists;
      return std::make_shared<Store>(store.buffer, store.indices,
                                     MakeSelect(all, element, ZeroOf(element->dtype)));
    });
  }

  Stmt Copies(const Expr& number, const std::string& suffix) const {
    std::vector<Stmt> copies;
    for (const Stmt& copy : parts_.copies) {
      const Stmt to_slot = rings_.In(copy, Simplify(Mod(number, stages_)));
      Stmt at = SubstituteSimplified(to_slot, ValuesAt(nest_, number));
      // A step whose elements are all beyond a condition has a copy as well, which reads none of them.
      if (StoreOf(at)->value->op == Op::kConst) at = SubstituteVars(to_slot, ValuesAt(nest_, number));
      copies.push_back(std::make_shared<Copy>(CopyWithSuffix(at, suffix), CopyEngine::kThreads));
    }
    return MakeSeq(copies);
  }

  const std::vector<const For*> nest_;
  const LoopParts parts_;
  const int64_t stages_;
  const Rings rings_;
};

}  // namespace

// Top-down, so that the outermost loop of the nest is found first.
Stmt PipelineByThreads(const Stmt& stmt, const LoopParts& parts) {
  const std::vector<const For*> nest = NestAround(stmt);
  if (!nest.empty()) return ThreadsPipeline(nest, parts).Build();
  return MapChildren(stmt, [&](const Stmt& child) { return PipelineByThreads(child, parts); });
}

}  // namespace mycc
