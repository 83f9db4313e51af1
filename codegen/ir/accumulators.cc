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

template <typename ValueFn>
Stmt StoreParts(const ReducedTuple& reduced, const ValueFn& value_of) {
  std::vector<Stmt> stores;
  for (int part = 0; part < static_cast<int>(reduced.buffers.size()); ++part)
    stores.push_back(std::make_shared<Store>(reduced.buffers[part], reduced.indices, value_of(part)));
  return MakeSeq(std::move(stores));
}

}  // namespace

ReducedTuple ReducedBy(const Block& block) {
  return TupleOf(block.reduce, block.out, block.indices, block.value, block.more);
}

ReducedTuple ReducedBy(const Combine& combine) {
  return TupleOf(combine.reduce, combine.buffer, combine.indices, combine.value, combine.more);
}

Stmt StartAccumulators(const ReducedTuple& reduced) {
  return StoreParts(reduced,
                    [&](int part) { return reduced.reduce.Identity(part, reduced.buffers[part]->dtype); });
}

Stmt UpdateAccumulators(const ReducedTuple& reduced) {
  std::vector<Expr> before;
  before.reserve(reduced.buffers.size());
  for (const Buffer& buffer : reduced.buffers) before.push_back(Load(buffer, reduced.indices));
  return StoreParts(reduced, [&](int part) { return reduced.reduce.Combined(part, before, reduced.values); });
}

Stmt CombineAccumulators(const ReducedTuple& reduced) {
  auto combine =
      std::make_shared<Combine>(reduced.reduce, reduced.buffers[0], reduced.indices, reduced.values[0]);
  for (size_t i = 1; i < reduced.buffers.size(); ++i)
    combine->more.push_back({reduced.buffers[i], reduced.values[i]});
  return combine;
}

}  // namespace mycc
