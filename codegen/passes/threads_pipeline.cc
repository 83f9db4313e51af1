// Pipelines by all threads (cp.async), for Ampere and where the copy engine cannot: the copies of the first
// s - 1 iterations come before the loop, and each iteration issues those of the one s - 1 later.
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
    const Expr next = VarRef(step) + (stages_ - 1);
    std::vector<Stmt> body = {std::make_shared<WaitGroup>(stages_ - 2)};
    if (total >= stages_) {
      Stmt copies = Copies(next, ".next");
      body.push_back(std::make_shared<If>(Simplify(MakeBinary(Op::kLt, next, IntConst(total))), copies));
    }
    body.push_back(std::make_shared<CommitGroup>());
    for (const Stmt& work : parts_.work)
      body.push_back(rings_.In(SubstituteSimplified(work, At(VarRef(step))), Mod(VarRef(step), stages_)));
    result.push_back(std::make_shared<For>(step, IntConst(total), LoopKind::kSerial, MakeSeq(body)));
    result.push_back(std::make_shared<WaitGroup>(0));
    return rings_.Around(MakeSeq(result));
  }

 private:
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
