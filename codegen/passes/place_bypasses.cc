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
#include "codegen/ir/visit.h"
#include "codegen/passes/lanes.h"
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
  const BufferSet read = LoadedUnder(loop.body);
  VisitEach<Store>(loop.body, [&](const Store& store) {
    if (!own.contains(store.buffer.get()) && !read.contains(store.buffer.get()) &&
        std::ranges::find(outputs, store.buffer) == outputs.end())
      outputs.push_back(store.buffer);
  });
  return outputs;
}

// Marks the vector stores to the outputs.
Stmt PastCaches(const Stmt& loop, const std::vector<Buffer>& outputs) {
  return RewriteLaneStores(loop, [&](const Store& store, const For& lanes, const auto&) -> Stmt {
    if (std::ranges::find(outputs, store.buffer) == outputs.end()) return nullptr;
    const int64_t most = AlignedLanes(*store.buffer, store.indices, *lanes.var);
    if (most * DTypeBytes(store.buffer->dtype) < kLeastBypassBytes) return nullptr;
    return Changed(store, [&](Store* changed) { changed->bypass_lanes = most; });
  });
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
    return Changed(loop, [](For* changed) { changed->marks.nontemporal = false; });
  });
}

}  // namespace mycc
