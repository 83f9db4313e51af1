// Moves nests that load tiles of registers from input tensors, such as biases of scores, up to the product in
// front of them. overlap_products then places the wait for the product after these nests, so that their loads
// run beside it.
//
//   mma: s = q * k                                 mma: s = q * k
//   arrive releasing k                       ->    thread a: for b: r[a,b] = bias[a, j*64 + b]
//   thread a: for b: r[a,b] = bias[a, j*64 + b]    arrive releasing k
//   thread a: for b: c[a,b] = s[a,b] + r[a,b]      thread a: for b: c[a,b] = s[a,b] + r[a,b]
#include <algorithm>
#include <vector>

#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Statements that a fetch may move in front of. A persistent block arrives in a tile's last turn alone.
bool IsPassed(const Stmt& stmt) {
  return !AnyStmt(stmt, [](const Stmt& part) {
    return part->kind != StmtKind::kArrive && part->kind != StmtKind::kTurn && part->kind != StmtKind::kSeq &&
           part->kind != StmtKind::kIf;
  });
}

// Stores to registers alone, of nothing but elements of tensors that the function only reads: none is
// `written`.
bool IsFetch(const Stmt& nest, const BufferSet& written) {
  if (nest->kind != StmtKind::kFor) return false;
  bool fetches = true, loads = false;
  ForEachStmt(nest, [&](const Stmt& stmt) {
    const bool is_structure = stmt->kind == StmtKind::kFor || stmt->kind == StmtKind::kSeq ||
                              stmt->kind == StmtKind::kIf || stmt->kind == StmtKind::kLet;
    const Store* store = DynAs<Store>(stmt);
    fetches = fetches && (is_structure || (store != nullptr && store->buffer->scope == Scope::kLocal));
    ForEachLoad(stmt, [&](const ExprNode& e) {
      loads = true;
      fetches = fetches && e.buffer->scope == Scope::kGlobal && !written.contains(e.buffer.get());
    });
  });
  return fetches && loads;
}

// The sequence with its fetches moved; null when there are none.
Stmt WithFetchesMoved(const Seq& seq, const BufferSet& written) {
  std::vector<Stmt> stmts = seq.stmts;
  bool moved = false;
  for (auto fetch = stmts.begin(); fetch != stmts.end(); ++fetch) {
    if (!IsFetch(*fetch, written)) continue;
    auto to = fetch;
    while (to != stmts.begin() && IsPassed(*(to - 1))) --to;
    if (to == fetch || to == stmts.begin() || (*(to - 1))->kind != StmtKind::kMma) continue;
    std::rotate(to, fetch, fetch + 1);
    moved = true;
  }
  return moved ? MakeSeq(std::move(stmts)) : nullptr;
}

}  // namespace

Stmt FetchAhead(const Stmt& body) {
  const BufferSet written = WrittenUnder(body);
  return RewriteEach<Seq>(body, [&](const Seq& seq) { return WithFetchesMoved(seq, written); });
}

}  // namespace mycc
