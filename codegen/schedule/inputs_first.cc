#include "codegen/schedule/inputs_first.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

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
  const std::vector<Stmt> stmts = PartsOf(function.body);
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
  return WithBody(function, WithParts(function.body, std::move(ordered)));
}

}  // namespace mycc
