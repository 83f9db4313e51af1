#include "codegen/schedule/inputs_first.h"

#include <algorithm>
#include <unordered_set>

#include "base/status.h"
#include "codegen/ir/visit.h"
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

bool WritesOneOf(const Stmt& stmt, const BufferSet& buffers) {
  return AnyOf<Block>(stmt, [&](const Block& block) {
    return buffers.contains(block.out.get()) ||
           std::any_of(block.more.begin(), block.more.end(), [&](const Accumulator& accumulator) {
             return buffers.contains(accumulator.buffer.get());
           });
  });
}

void AddReads(const Block& block, BufferSet* buffers) {
  const auto add = [&](const ExprNode& load) { buffers->insert(load.buffer.get()); };
  block.ForEachValue([&](const Expr& value) { ForEachLoad(value, add); });
  for (const Expr& index : block.indices) ForEachLoad(index, add);
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
  BufferSet needed;
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
    return Refusal("an input of ", consumer.name, " is computed from what the nest of ", producer.name,
                   " computes, and cannot be complete before it");
  }
  std::vector<Stmt> ordered(stmts.begin(), nest);
  ordered.insert(ordered.end(), first.rbegin(), first.rend());
  ordered.push_back(*nest);
  ordered.insert(ordered.end(), rest.rbegin(), rest.rend());
  ordered.insert(ordered.end(), end, stmts.end());
  return WithBody(function, WithRootSequence(function.body, std::move(ordered)));
}

}  // namespace mycc
