#include "codegen/passes/ring_counter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"

namespace mycc {
namespace {

constexpr DType kCounted = DType::kI32;

}  // namespace

RingCounter::RingCounter(const std::string& name, int64_t most)
    : counter_(MakeBuffer(absl::StrCat(name, ".count"), kCounted, {}, Scope::kLocal)),
      before_(MakeVar(absl::StrCat(name, ".counted"), most + 1)) {}

Stmt RingCounter::Counting(Stmt loop, const Expr& length) const {
  // A loop of negative length has no steps.
  const Expr after = before() + Simplify(MakeBinary(Op::kMax, length, IntConst(0)));
  Stmt count = std::make_shared<Store>(counter_, std::vector<Expr>{}, MakeCast(kCounted, after));
  return std::make_shared<Let>(before_, MakeCast(DType::kI64, Load(counter_, {})),
                               MakeSeq({std::move(loop), std::move(count)}));
}

Stmt RingCounter::Around(Stmt role) const {
  Stmt reset = std::make_shared<Store>(counter_, std::vector<Expr>{}, MakeCast(kCounted, IntConst(0)));
  return std::make_shared<Alloc>(counter_, MakeSeq({std::move(reset), std::move(role)}));
}

}  // namespace mycc
