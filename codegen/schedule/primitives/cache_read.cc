// cache_read(t0, B, l, local): under loop l, block B reads a copy of the box of t0 that it needs; the copy is
// made at the start of each iteration. With `root` as the loop the copy is of the whole tensor, made once; of
// a const input in scope `packed`, it is made ahead of time.
//
//   for l:                              for l:
//     for j: B: .. t0[l*4 + j] ..   ->    alloc t0.r[4]
//                                         for a in 4: t0.r: t0.r[i - l*4] = t0[i],  i = l*4 + a
//                                         for j: B: .. t0.r[j] ..
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// Guards of the reader that stand still inside the loop: where they refuse the whole iteration, the tensor
// may not be complete yet.
std::vector<IterVar> OuterGuards(const Block& reader, const std::unordered_set<const VarNode*>& inner) {
  std::vector<IterVar> guards;
  for (const IterVar& iter : reader.iters) {
    bool varies = false;
    Visit(iter.binding,
          [&](const ExprNode& e) { varies |= e.op == Op::kVar && inner.count(e.var.get()) > 0; });
    if (IsGuard(reader, iter) && !varies)
      guards.push_back({MakeVar(iter.var->name, iter.var->extent), false, iter.binding});
  }
  return guards;
}

Stmt MakeCopy(const std::string& name, const Buffer& from, const Buffer& to,
              const std::vector<DimRegion>& box, const std::vector<IterVar>& guards) {
  BoxCopy copy = MakeBoxCopy(name, box, from->shape);
  auto block = std::make_shared<Block>();
  block->name = name;
  block->iters = copy.iters;
  block->iters.insert(block->iters.end(), guards.begin(), guards.end());
  block->out = to;
  block->indices = Localize(copy.indices, box);
  block->value = Load(from, copy.indices);
  return MakeNest(copy.loops, std::move(block));
}

absl::Status CheckScope(const Function& function, const Buffer& buffer, Scope scope, bool at_root) {
  if (scope == Scope::kLocal) return absl::OkStatus();
  if (scope != Scope::kPacked) {
    return absl::FailedPreconditionError(
        absl::StrCat("a copy in scope ", ScopeName(scope), "; expected local or packed"));
  }
  for (const Param& param : function.params) {
    if (param.buffer == buffer && param.kind == ParamKind::kConst && at_root) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("scope packed is for a const input copied at root; ",
                                                    buffer->name,
                                                    at_root ? " is not const" : " is copied in a loop"));
}

}  // namespace

absl::StatusOr<Function> CacheRead(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindBuffer(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Path reader_path, FindBlock(function, args.Name(1)));
  const Block& reader = reader_path.block();
  Scope scope;
  if (!ParseScope(args.Name(3), &scope))
    return absl::FailedPreconditionError(absl::StrCat(args.Name(3), " is not a scope"));
  const bool at_root = args.Name(2) == "root";
  MYCC_RETURN_IF_ERROR(CheckScope(function, buffer, scope, at_root));
  if (!Reads(reader, buffer))
    return absl::FailedPreconditionError(absl::StrCat(reader.name, " does not read ", buffer->name));

  Path at;
  at.nodes = {function.body};
  if (at_root) {
    const std::vector<const For*> around = LoopsOn(reader_path);
    const Block* writer = WriterOf(function, buffer);
    if (writer != nullptr && !around.empty() && ContainsBlock(around.front()->body, writer->name)) {
      return absl::FailedPreconditionError(
          absl::StrCat(writer->name, " writes ", buffer->name, " in the same nest as ", reader.name));
    }
  }
  if (!at_root) {
    MYCC_ASSIGN_OR_RETURN(at, FindLoop(function, args.Name(2)));
    if (!ContainsBlock(at.target(), reader.name)) {
      return absl::FailedPreconditionError(absl::StrCat(reader.name, " is not under loop ", args.Name(2)));
    }
    for (const Block* block : BlocksUnder(at.target())) {
      if (block->out == buffer) {
        return absl::FailedPreconditionError(
            absl::StrCat(block->name, " writes ", buffer->name, " under the same loop"));
      }
    }
  }
  const Stmt body = at_root ? function.body : at.loop().body;
  const std::vector<DimRegion> box =
      CoveringBox(ReadsUnder(Stmt(reader_path.target()), buffer), LoopVarsUnder(body), buffer->shape);
  const std::string name = FreshName(function, absl::StrCat(buffer->name, ".r"));
  const Buffer copy = MakeBuffer(name, buffer->dtype, ExtentsOf(box), scope);
  Stmt inside = RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
    if (stmt->kind != StmtKind::kBlock || As<Block>(stmt).name != reader.name) return nullptr;
    return ReplaceBuffer(stmt, buffer, copy,
                         [&](const std::vector<Expr>& index) { return Localize(index, box); });
  });
  inside = InsertBeforeReader(inside, copy,
                              MakeCopy(name, buffer, copy, box, OuterGuards(reader, LoopVarsUnder(body))));
  inside = std::make_shared<Alloc>(copy, std::move(inside));
  if (at_root) return WithBody(function, std::move(inside));
  const For& loop = at.loop();
  return WithBody(function, ReplaceAt(at, std::make_shared<For>(loop.var, loop.extent, loop.loop_kind,
                                                                std::move(inside))));
}

}  // namespace mycc
