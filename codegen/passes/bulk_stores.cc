#include "codegen/passes/bulk_stores.h"

#include <algorithm>

#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/pipeline_parts.h"

namespace mycc {
namespace {

// The only store of a nest of serial loops; null for other statements.
const Store* StoreOfNest(const Stmt& stmt) {
  const For* loop = DynAs<For>(stmt);
  return loop != nullptr && loop->loop_kind == LoopKind::kSerial ? StoreOf(stmt) : nullptr;
}

bool LeavesInBulk(const Stmt& nest, const Store& store, const std::vector<Buffer>& tiles) {
  return store.value->op == Op::kLoad && std::count(tiles.begin(), tiles.end(), store.value->buffer) > 0 &&
         BulkBoxOf(nest).ok();
}

}  // namespace

Stmt StoreInBulk(const Stmt& body, const std::vector<Buffer>& tiles) {
  return RewriteEach<Seq>(body, [&](const Seq& seq) -> Stmt {
    std::vector<Stmt> parts;
    for (const Stmt& part : seq.stmts) {
      const Store* store = StoreOfNest(part);
      if (store != nullptr && std::count(tiles.begin(), tiles.end(), store->buffer) > 0)
        parts.push_back(std::make_shared<WaitGroup>(0));
      if (store != nullptr && LeavesInBulk(part, *store, tiles)) {
        parts.insert(parts.end(), {std::make_shared<Fence>(), std::make_shared<Copy>(part, CopyEngine::kBulk),
                                   std::make_shared<CommitGroup>()});
      } else {
        parts.push_back(part);
      }
    }
    return parts.size() == seq.stmts.size() ? nullptr : MakeSeq(parts);
  });
}

}  // namespace mycc
