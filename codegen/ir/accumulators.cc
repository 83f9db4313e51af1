#include "codegen/ir/accumulators.h"

#include <memory>
#include <utility>

namespace mycc {
namespace {

ReducedTuple TupleOf(const Reduction& reduce, const Buffer& first, const std::vector<Expr>& indices,
                     const Expr& value, const std::vector<Accumulator>& more) {
  ReducedTuple reduced{reduce, {first}, indices, {value}};
  for (const Accumulator& accumulator : more) {
    reduced.buffers.push_back(accumulator.buffer);
    reduced.values.push_back(accumulator.value);
  }
  return reduced;
}

}  // namespace

ReducedTuple ReducedBy(const Block& block) {
  return TupleOf(block.reduce, block.out, block.indices, block.value, block.more);
}

ReducedTuple ReducedBy(const Combine& combine) {
  return TupleOf(combine.reduce, combine.buffer, combine.indices, combine.value, combine.more);
}

Stmt StartAccumulators(const ReducedTuple& reduced) {
  std::vector<Stmt> stores;
  for (size_t i = 0; i < reduced.buffers.size(); ++i) {
    stores.push_back(
        std::make_shared<Store>(reduced.buffers[i], reduced.indices,
                                reduced.reduce.Identity(static_cast<int>(i), reduced.buffers[i]->dtype)));
  }
  return MakeSeq(std::move(stores));
}

Stmt UpdateAccumulators(const ReducedTuple& reduced) {
  std::vector<Expr> before;
  before.reserve(reduced.buffers.size());
  for (const Buffer& buffer : reduced.buffers) before.push_back(Load(buffer, reduced.indices));
  std::vector<Stmt> stores;
  for (size_t i = 0; i < reduced.buffers.size(); ++i) {
    stores.push_back(
        std::make_shared<Store>(reduced.buffers[i], reduced.indices,
                                reduced.reduce.Combined(static_cast<int>(i), before, reduced.values)));
  }
  return MakeSeq(std::move(stores));
}

Stmt CombineAccumulators(const ReducedTuple& reduced) {
  auto combine =
      std::make_shared<Combine>(reduced.reduce, reduced.buffers[0], reduced.indices, reduced.values[0]);
  for (size_t i = 1; i < reduced.buffers.size(); ++i)
    combine->more.push_back({reduced.buffers[i], reduced.values[i]});
  return combine;
}

}  // namespace mycc
