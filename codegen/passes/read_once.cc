#include "codegen/passes/read_once.h"

#include <algorithm>
#include <unordered_map>

#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

constexpr int64_t kMuchMore = 4;
constexpr int64_t kMaxLoads = int64_t{1} << 50;

// Tensors from outside the launch.
BufferSet TensorsOf(const Stmt& launch) {
  BufferSet used = BuffersUnder(launch);
  VisitEach<Alloc>(launch, [&](const Alloc& alloc) { used.erase(alloc.buffer.get()); });
  return used;
}

// Counts the executed loads of each buffer, over all threads.
void CountLoads(const Stmt& root, int64_t times, std::unordered_map<const BufferNode*, int64_t>* loads) {
  if (const For* loop = DynAs<For>(root)) times = std::min(times * loop->var->extent, kMaxLoads);
  std::unordered_set<const ExprNode*> counted;  // a load that occurs twice in a statement counts once
  ForEachLoad(root, [&](const ExprNode& load) {
    if (counted.insert(&load).second) (*loads)[load.buffer.get()] += times;
  });
  for (const Stmt& child : Children(root)) CountLoads(child, times, loads);
}

}  // namespace

// Less than twice, to allow for partial tiles at the edges.
BufferSet ReadOnce(const Stmt& body, const Launch& launch) {
  const BufferSet written = WrittenUnder(body), tensors = TensorsOf(launch.body);
  std::unordered_map<const BufferNode*, int64_t> loads;
  Stmt block;
  GridLoopsOf(launch.body, &block);
  CountLoads(block, launch.shape.grid / launch.shape.cluster_reduce, &loads);
  int64_t written_bytes = 0;
  for (const BufferNode* tensor : tensors) written_bytes += written.contains(tensor) ? tensor->bytes() : 0;
  BufferSet once;
  for (const BufferNode* tensor : tensors) {
    if (written.contains(tensor) || tensor->bytes() < kMuchMore * written_bytes) continue;
    if (loads[tensor] < 2 * std::max<int64_t>(tensor->num_elements(), 1)) once.insert(tensor);
  }
  return once;
}

}  // namespace mycc
