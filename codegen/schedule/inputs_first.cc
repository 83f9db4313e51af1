#include "codegen/schedule/inputs_first.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// The statements in order inside the Allocs of tensors.
const Seq* RootSequence(const Function& function) {
  Stmt root = function.body;
  while (const Alloc* alloc = DynAs<Alloc>(root)) root = alloc->body;
  return DynAs<Seq>(root);
}

Stmt WithRootSequence(const Stmt& root, std::vector<Stmt> stmts) {
  const Alloc* alloc = DynAs<Alloc>(root);
  if (alloc == nullptr) return MakeSeq(std::move(stmts));
  return std::make_shared<Alloc>(alloc->buffer, WithRootSequence(alloc->body, std::move(stmts)));
}

bool WritesOneOf(const Stmt& stmt, const std::unordered_set<const BufferNode*>& buffers) {
  const std::vector<const Block*> blocks = BlocksUnder(stmt);
  return std::any_of(blocks.begin(), blocks.end(),
                     [&](const Block* block) { return buffers.contains(block->out.get()); });
}

void AddReads(const Block& block, std::unordered_set<const BufferNode*>* buffers) {
  const auto add = [&](const ExprNode& e) {
    if (e.op == Op::kLoad) buffers->insert(e.buffer.get());
  };
  Visit(block.value, add);
  for (const Expr& index : block.indices) Visit(index, add);
}

}  // namespace

absl::StatusOr<Function> WithInputsFirst(const Function& function, const Block& consumer,
                                         const Block& producer) {
  const Seq* root = RootSequence(function);
  if (root == nullptr) return function;
  const std::vector<Stmt>& stmts = root->stmts;
  const auto holding = [&](const Block& block) {
    return std::find_if(stmts.begin(), stmts.end(),
                        [&](const Stmt& stmt) { return ContainsBlock(stmt, block.name); });
  };
  const auto nest = holding(producer), end = holding(consumer);
  if (nest == stmts.end() || end <= nest) return function;
  // From the consumer backwards: what computes an input, and the inputs of that.
  std::unordered_set<const BufferNode*> needed;
  AddReads(consumer, &needed);
  needed.erase(producer.out.get());
  std::vector<Stmt> first, rest;
  for (auto stmt = end; --stmt != nest;) {
    const bool moves = WritesOneOf(*stmt, needed);
    (moves ? first : rest).push_back(*stmt);
    if (!moves) continue;
    for (const Block* block : BlocksUnder(*stmt)) AddReads(*block, &needed);
  }
  if (first.empty()) return function;
  if (WritesOneOf(*nest, needed)) {
    return absl::FailedPreconditionError(absl::StrCat("an input of ", consumer.name,
                                                      " is computed from what the nest of ", producer.name,
                                                      " computes, and cannot be complete before it"));
  }
  std::vector<Stmt> ordered(stmts.begin(), nest);
  ordered.insert(ordered.end(), first.rbegin(), first.rend());
  ordered.push_back(*nest);
  ordered.insert(ordered.end(), rest.rbegin(), rest.rend());
  ordered.insert(ordered.end(), end, stmts.end());
  return WithBody(function, WithRootSequence(function.body, std::move(ordered)));
}

}  // namespace mycc
