// skip_zeros(B, p, d): omits from block B's sum the products with the zeros of the padded tensor p, before
// and after its elements along dimension d. When B skips all zeros, inlining p leaves no select.
//
//   for i in 10: p: t1[i] = select(1 <= i && i < 9, t0[i - 1], 0)
//   for i in 8: for r in 3: B: t2[i] += t1[i + r] * w[r]
//     ->
//   for i in 8: for r in 3: B: t2[i] += t1[i + r] * w[r]    where i + r - 1 is in 8
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/product.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/padding.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// The factor of a product that loads the tensor.
const ExprNode* FactorOf(const Block& block, const std::string& buffer) {
  if (!SumsProducts(block)) return nullptr;
  for (const Expr& factor : block.value->args) {
    const ExprNode* load = LoadOfFactor(factor);
    if (load != nullptr && load->buffer->name == buffer) return load;
  }
  return nullptr;
}

// The range of the block's elements along the dimension that are not padding.
std::optional<Interval> ElementsOf(const Block& block, int64_t dim) {
  if (block.reduce != ReduceOp::kNone || !WritesAtItsAxes(block)) return std::nullopt;
  return ElementsAlong(block.value, block.indices[dim]->var);
}

}  // namespace

absl::StatusOr<Function> SkipZeros(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckNaive(path, /*guards_allowed=*/true));
  const Block& block = path.block();
  const ExprNode* load = FactorOf(block, args.Name(1));
  if (load == nullptr) {
    return Refusal(block.name, " does not sum products of elements of ", args.Name(1));
  }
  const int64_t dim = args.Int(2);
  if (dim < 0 || dim >= load->buffer->rank()) {
    return Refusal("dimension ", dim, "; ", load->buffer->name, " has ", load->buffer->rank());
  }
  const Block* writer = WriterOf(function, load->buffer);
  const auto elements = writer ? ElementsOf(*writer, dim) : std::nullopt;
  if (!elements) {
    return Refusal(load->buffer->name, " is not select(a <= i && i < b && .., element, 0) along dimension ",
                   dim);
  }
  auto skipping = std::make_shared<Block>(block);
  const Var place = MakeVar(absl::StrCat("z", dim), elements->max - elements->min + 1);
  const Expr index = Substitute(load->args[dim], BindingsOf(block));
  skipping->iters.push_back({place, false, Simplify(index - elements->min)});
  if (!GuardsTerms(*skipping, skipping->iters.back())) {
    return Refusal("every term of some sums of ", block.name, " would be skipped; expected index ", dim,
                   " to depend on a reduction axis");
  }
  return WithBody(function, ReplaceAt(path, skipping));
}

}  // namespace mycc
