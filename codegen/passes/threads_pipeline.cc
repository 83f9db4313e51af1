// Pipelines by all threads (cp.async), for Ampere and where the copy engine cannot: the copies of the first
// s - 1 iterations come before the loop, and each iteration issues those of the one s - 1 later.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/passes/copy_stmt.h"
#include "codegen/passes/pipeline_parts.h"

namespace mycc {
namespace {

// In place of the nest of serial loops that ends in the pipelined one.
class ThreadsPipeline {
 public:
  ThreadsPipeline(std::vector<const For*> nest, LoopParts parts)
      : nest_(std::move(nest)),
        parts_(std::move(parts)),
        stages_(nest_.back()->marks.pipeline.stages),
        rings_(parts_.tiles, nest_.back()->marks.pipeline.stages) {}

  Stmt Build() const {
    int64_t total = 1;
    for (const For* loop : nest_) total *= loop->var->extent;
    const std::string& name = nest_.back()->var->name;
    const Var step = MakeVar(absl::StrCat(name, ".step"), total);
    std::vector<Stmt> result;
    for (int64_t ahead = 0; ahead < stages_ - 1; ++ahead) {
      if (ahead < total) result.push_back(Copies(IntConst(ahead), absl::StrCat(".ahead", ahead)));
      result.push_back(std::make_shared<CommitGroup>());
    }
    std::vector<Stmt> body = {std::make_shared<WaitGroup>(stages_ - 2)};
    if (total >= stages_) body.push_back(CopiesAhead(VarRef(step) + (stages_ - 1), total));
    body.push_back(std::make_shared<CommitGroup>());
    for (const Stmt& work : parts_.work)
      body.push_back(rings_.In(SubstituteSimplified(work, At(VarRef(step))), Mod(VarRef(step), stages_)));
    result.push_back(std::make_shared<For>(step, IntConst(total), LoopKind::kSerial, MakeSeq(body)));
    result.push_back(std::make_shared<WaitGroup>(0));
    return rings_.Around(MakeSeq(result));
  }

 private:
  // The copies of a later iteration, where there is one. Beside ordinary arithmetic they stand in one piece
  // of straight code with it, so that the compiler can mix the two: zeros are copied into a slot that nobody
  // reads again. Tensor cores are told what to do in an order that is kept anyway.
  Stmt CopiesAhead(const Expr& number, int64_t total) const {
    const Expr exists = Simplify(MakeBinary(Op::kLt, number, IntConst(total)));
    const Stmt copies = Copies(number, ".next");
    const bool on_tensor_cores = std::any_of(parts_.work.begin(), parts_.work.end(),
                                             [](const Stmt& work) { return Contains(work, StmtKind::kMma); });
    if (on_tensor_cores) return std::make_shared<If>(exists, copies);
    return RewriteStmts(copies, [&](const Stmt& stmt) -> Stmt {
      const Store* store = DynAs<Store>(stmt);
      return store == nullptr ? nullptr : ZeroUnless(exists, *store);
    });
  }

  static Stmt ZeroUnless(const Expr& condition, const Store& store) {
    const bool selects = store.value->op == Op::kSelect;
    const Expr& element = selects ? store.value->args[1] : store.value;
    const Expr zero = IsFloat(element->dtype) ? FloatConst(0, element->dtype) : IntConst(0, element->dtype);
    const Expr all = selects ? MakeBinary(Op::kAnd, condition, store.value->args[0]) : condition;
    return std::make_shared<Store>(store.buffer, store.indices, MakeSelect(all, element, zero));
  }

  VarMap At(const Expr& number) const { return ValuesAt(nest_, number); }

  Stmt Copies(const Expr& number, const std::string& suffix) const {
    std::vector<Stmt> copies;
    for (const Stmt& copy : parts_.copies) {
      Stmt at = SubstituteSimplified(rings_.In(copy, Simplify(Mod(number, stages_))), At(number));
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

// From the top: the outermost loop of the nest is found first.
Stmt PipelineByThreads(const Stmt& stmt, const LoopParts& parts) {
  const std::vector<const For*> nest = NestAround(stmt);
  if (!nest.empty()) return ThreadsPipeline(nest, parts).Build();
  return MapChildren(stmt, [&](const Stmt& child) { return PipelineByThreads(child, parts); });
}

}  // namespace mycc
