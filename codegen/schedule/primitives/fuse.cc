// fuse([i, j]): turns adjacent loops of one perfect nest into one loop.
//
//   for i in I:                 for i+j in I*J:
//     for j in J: B[i, j]  ->     B[(i+j) // J, (i+j) % J]
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// The fused loop's name has the block's name once: t3.a0 and t3.a1 -> t3.a0+a1.
std::string FusedName(const std::string& first, const std::string& second) {
  return absl::StrCat(first, "+", second.substr(second.find('.') + 1));
}

// Whether the loop runs along elements of the block's tensor or accumulator, or along a guard of elements.
bool CarriesElements(const Block& block, const For& loop) {
  const VarNode* var = loop.var.get();
  return UsesVar(block.indices, var) || std::ranges::any_of(block.iters, [&](const IterVar& iter) {
           return !iter.reduce && !GuardsTerms(block, iter) && UsesVar(iter.binding, var);
         });
}

// Refuses to fuse an axis with a reduction: inside the fused loop there is no place to initialise or finish a
// result.
absl::Status CheckOneNature(const std::vector<const For*>& loops) {
  for (const Block* block : BlocksUnder(loops.back()->body)) {
    const auto carries = [&](auto&& what) {
      return std::ranges::any_of(loops, [&](const For* l) { return what(*block, *l); });
    };
    if (carries(CarriesReduction) && carries(CarriesElements)) {
      return Refusal("the fused loop would carry both a reduction and an axis of ", block->name);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> Fuse(const Function& function, const Target&, const StepArgs& args) {
  const auto& names = args.Names(0);
  if (names.size() < 2) return Refusal("expected at least two loops");
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, names[0]));
  std::vector<const For*> loops = {&path.loop()};
  std::string fused_name = names[0];
  int64_t extent = path.loop().var->extent;
  for (size_t i = 1; i < names.size(); ++i) {
    const For* inner = DynAs<For>(loops.back()->body);
    if (inner == nullptr || inner->var->name != names[i]) {
      return Refusal(names[i], " is not the only statement directly inside ", names[i - 1]);
    }
    loops.push_back(inner);
    fused_name = FusedName(fused_name, names[i]);
    extent *= inner->var->extent;
  }
  for (const For* loop : loops) {
    if (loop->loop_kind != LoopKind::kSerial || !loop->marks.instruction.empty()) {
      return Refusal(loop->var->name, " is ", LoopKindName(loop->loop_kind), "; only serial loops are fused");
    }
  }
  MYCC_RETURN_IF_ERROR(CheckOneNature(loops));
  const Var fused = MakeVar(fused_name, extent);
  const Stmt body = SubstituteVars(loops.back()->body, DigitsOf(loops, VarRef(fused)));
  return WithBody(function, ReplaceAt(path, MakeNest({{fused}}, body)));
}

}  // namespace mycc
