// Decides which stores bypass the caches in loops marked by nontemporal: those of whole vectors to tensors
// that the loop does not read. They need aligned addresses. A tensor's alignment is known only in each call,
// so that code for both cases is made of a Bypass; within a tensor the alignment must follow from the index.
//
//   for i in 40 past the caches:              past the caches y
//     for b in 4: vector v in 16:       ->      for i in 40:
//       y[i, b*16 + v] = ..                       for b in 4: vector v in 16:
//                                                   y[i, b*16 + v] = .., 16 lanes past the caches
#include <algorithm>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Loops that are executed as one, parallel loops and those of lanes, have the marks of all. Turned groups are
// three loops, and the outermost alone has a form.
bool BypassesCaches(const For& loop) {
  if (loop.marks.nontemporal) return true;
  const For* inner = DynAs<For>(loop.body);
  if (inner == nullptr) return false;
  const bool parallel = loop.loop_kind == LoopKind::kParallel && inner->loop_kind == LoopKind::kParallel;
  const bool lanes = loop.loop_kind == LoopKind::kUnroll && loop.marks.form != LaneForm::kPlain;
  if (loop.marks.form == LaneForm::kTurnsGroups && BypassesCaches(As<For>(inner->body))) return true;
  return (parallel || lanes) && BypassesCaches(*inner);
}

// The tensors that a loop writes and never reads, apart from buffers of the function itself.
std::vector<Buffer> OutputsOf(const For& loop, const BufferSet& own) {
  std::vector<Buffer> outputs;
  BufferSet read;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    ForEachLoad(stmt, [&](const ExprNode& load) { read.insert(load.buffer.get()); });
    const Store* store = DynAs<Store>(stmt);
    if (store != nullptr && !own.contains(store->buffer.get()) &&
        std::find(outputs.begin(), outputs.end(), store->buffer) == outputs.end())
      outputs.push_back(store->buffer);
    return true;
  });
  std::erase_if(outputs, [&](const Buffer& buffer) { return read.contains(buffer.get()); });
  return outputs;
}

// Marks the vector stores to the outputs; `lanes` is the vector loop around.
Stmt PastCaches(const Stmt& stmt, const std::vector<Buffer>& outputs, const For* lanes = nullptr) {
  if (stmt->kind == StmtKind::kTileMove) return stmt;
  if (const Store* store = DynAs<Store>(stmt)) {
    if (lanes == nullptr || std::find(outputs.begin(), outputs.end(), store->buffer) == outputs.end())
      return stmt;
    const int64_t most = AlignedLanes(*store->buffer, store->indices, *lanes->var);
    if (most * DTypeBytes(store->buffer->dtype) < kLeastBypassBytes) return stmt;
    return Changed(*store, [&](Store* changed) { changed->bypass_lanes = most; });
  }
  if (const For* loop = DynAs<For>(stmt)) {
    const bool has_lanes = loop->loop_kind == LoopKind::kVector && loop->marks.form == LaneForm::kPlain;
    if (StoresShuffled(*loop) || (has_lanes && lanes != nullptr)) return stmt;
    if (has_lanes) lanes = loop;
  }
  return MapChildren(stmt, [&](const Stmt& child) { return PastCaches(child, outputs, lanes); });
}

Stmt WithBypasses(const Stmt& stmt, const BufferSet& own) {
  if (const For* loop = DynAs<For>(stmt); loop != nullptr && BypassesCaches(*loop)) {
    std::vector<Buffer> outputs = OutputsOf(*loop, own);
    if (!outputs.empty()) return std::make_shared<Bypass>(outputs, PastCaches(stmt, outputs));
  }
  return MapChildren(stmt, [&](const Stmt& child) { return WithBypasses(child, own); });
}

}  // namespace

Stmt PlaceBypasses(const Stmt& body) {
  BufferSet own;
  VisitEach<Alloc>(body, [&](const Alloc& alloc) { own.insert(alloc.buffer.get()); });
  return RewriteEach<For>(WithBypasses(body, own), [](const For& loop) -> Stmt {
    if (!loop.marks.nontemporal) return nullptr;
    LoopMarks marks = loop.marks;
    marks.nontemporal = false;
    return loop.Marked(marks);
  });
}

}  // namespace mycc
