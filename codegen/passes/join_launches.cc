// Makes one nest over blocks of neighbouring nests that compute elements of their own: a GPU then launches
// them at once, and none waits for the end of another.
//
//   block b in 8:                            block b in 10:
//     thread t in 256: p[b*256 + t] = ..       if b < 8:
//   block c in 2:                        ->      let b.j = b: thread t in 256: p[b.j*256 + t] = ..
//     thread u in 256: q[c*256 + u] = ..       else:
//                                                let c.j = b - 8: thread u in 256: q[c.j*256 + u] = ..
//
// They are copies and other elementwise nests, with as many threads each, that read nothing of each other.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// The loops over blocks of one nest, outermost first, and the code inside.
struct GridNest {
  std::vector<const For*> loops;
  Stmt inside;

  int64_t blocks() const { return IterationsOf(loops); }
};

struct BlockNest {
  std::vector<GridNest> nests;  // that are joined
  int64_t blocks = 1;           // of all of them
  int64_t threads = 1;
  BufferSet reads, writes;
};

// No mark decides how blocks share the loop, or what executes it.
bool IsUndecided(const LoopMarks& marks) {
  return marks.instruction.empty() && marks.pipeline.kind == PipelineKind::kNone &&
         marks.persistent_blocks == 0 && marks.min_blocks_per_sm == 0 && marks.cluster_reduce_blocks == 0 &&
         !marks.multicast_cluster;
}

// Under loops over blocks that nothing is decided for, loops of threads and unrolled ones, and stores.
std::optional<BlockNest> NestOfElements(const Stmt& root) {
  Stmt inside;
  const std::vector<const For*> grid = GridLoopsOf(root, &inside);
  const auto is_free = [](const For* loop) {
    return IsUndecided(loop->marks) && IsConstInt(loop->extent, loop->var->extent);
  };
  if (grid.empty() || !std::ranges::all_of(grid, is_free)) return std::nullopt;
  const auto is_other = [](const Stmt& stmt) {
    if (const For* loop = DynAs<For>(stmt)) {
      return loop->loop_kind == LoopKind::kSerial || loop->loop_kind == LoopKind::kGrid ||
             !IsUndecided(loop->marks);
    }
    return stmt->kind != StmtKind::kStore && stmt->kind != StmtKind::kIf && stmt->kind != StmtKind::kSeq;
  };
  if (AnyStmt(inside, is_other)) return std::nullopt;
  return BlockNest{
      {{grid, inside}}, IterationsOf(grid), ThreadsUnder(inside), LoadedUnder(inside), WrittenUnder(inside)};
}

bool CanJoin(const BlockNest& a, const BlockNest& b) {
  constexpr int64_t kMostBlocks = int64_t{1} << 30;
  return a.blocks + b.blocks <= kMostBlocks && a.threads == b.threads && !Intersect(a.writes, b.writes) &&
         !Intersect(a.writes, b.reads) && !Intersect(b.writes, a.reads);
}

// The nest's code in block `number` of its own.
Stmt InBlock(const GridNest& nest, const Expr& number) {
  VarMap own;
  std::vector<std::pair<Var, Expr>> values;
  // A variable is known not to be negative, so that it is divided by shifts and multiplications.
  Expr whole = number;
  if (nest.loops.size() > 1) {
    values.emplace_back(MakeVar(absl::StrCat(nest.loops[0]->var->name, ".n"), nest.blocks()), number);
    whole = VarRef(values[0].first);
  }
  const VarMap at = ValuesAt(nest.loops, whole);
  for (const For* loop : nest.loops) {
    values.emplace_back(MakeVar(absl::StrCat(loop->var->name, ".j"), loop->var->extent),
                        at.at(loop->var.get()));
    own[loop->var.get()] = VarRef(values.back().first);
  }
  Stmt body = SubstituteVars(nest.inside, own);
  for (auto value = values.rbegin(); value != values.rend(); ++value)
    body = std::make_shared<Let>(value->first, value->second, std::move(body));
  return body;
}

Stmt Joined(const BlockNest& all) {
  const auto name_of = [](std::string* text, const GridNest& nest) { *text += nest.loops[0]->var->name; };
  const Var block = MakeVar(absl::StrJoin(all.nests, "&", name_of), all.blocks);
  int64_t end = all.blocks;
  Stmt body;
  for (auto nest = all.nests.rbegin(); nest != all.nests.rend(); ++nest) {
    const int64_t begin = end - nest->blocks();
    const Stmt part = InBlock(*nest, VarRef(block) - begin);
    body = body == nullptr
               ? part
               : std::make_shared<If>(MakeBinary(Op::kLt, VarRef(block), IntConst(end)), part, body);
    end = begin;
  }
  return std::make_shared<For>(block, IntConst(block->extent), LoopKind::kGrid, std::move(body));
}

}  // namespace

Stmt JoinLaunches(const Stmt& body) {
  const std::vector<Stmt> parts = PartsOf(body);
  std::vector<Stmt> roots;
  std::optional<BlockNest> last;
  for (const Stmt& root : parts) {
    std::optional<BlockNest> nest = NestOfElements(root);
    if (!last || !nest || !CanJoin(*last, *nest)) {
      roots.push_back(root);
      last = std::move(nest);
      continue;
    }
    last->nests.push_back(std::move(nest->nests[0]));
    last->blocks += nest->blocks;
    last->reads.merge(nest->reads);
    last->writes.merge(nest->writes);
    roots.back() = Joined(*last);
  }
  return roots.size() == parts.size() ? body : WithParts(body, std::move(roots));
}

}  // namespace mycc
