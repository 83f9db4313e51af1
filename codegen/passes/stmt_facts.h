// Small analyses of statements that passes and back ends share. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/ir/stmt.h"

namespace mycc {

// Whether a GPU's threads have the elements in registers.
inline bool IsInRegisters(const BufferNode& buffer) {
  return buffer.scope == Scope::kLocal || buffer.scope == Scope::kAccumulator;
}

// The number of stores and tile statements.
int64_t CountLeaves(const Stmt& stmt);

// Whether the statement is an empty sequence.
bool IsEmpty(const Stmt& stmt);
// Whether the statement executes each of its children once.
bool RunsChildrenOnce(const Stmt& stmt);

// The buffer that a store, a combine or a product by itself writes, the first of a tuple; null for other
// statements.
const BufferNode* WrittenBy(const Stmt& stmt);

// Each of these buffers; a combine of tuples writes several. In scheduled code also those of blocks.
template <typename VisitFn>
void ForEachWritten(const Stmt& stmt, const VisitFn& visit) {
  if (const Combine* combine = DynAs<Combine>(stmt)) {
    combine->ForEachBuffer([&](const Buffer& buffer) { visit(buffer.get()); });
  } else if (const Block* block = DynAs<Block>(stmt)) {
    visit(block->out.get());
    for (const Accumulator& accumulator : block->more) visit(accumulator.buffer.get());
  } else if (const BufferNode* buffer = WrittenBy(stmt)) {
    visit(buffer);
  }
}

// The buffers that statements of these kinds write under `root`.
BufferSet WrittenUnder(const Stmt& root);
// The buffers that expressions load under `root`.
BufferSet LoadedUnder(const Stmt& root);
// Whether a buffer is in both.
bool Intersect(const BufferSet& a, const BufferSet& b);

// The operation of a store s = s (op) value; kNone for other stores.
ReduceOp ReductionOf(const Store& store);
// Whether the stored value depends on the buffer that it is stored to.
bool IsUpdate(const Store& store);

// The variables of the loops in asynchronous copies. Conditions over them are edges that the copy handles
// itself; passes leave them in place.
VarSet LoopVarsInCopies(const Stmt& body);

// A constant extent, or nullopt.
std::optional<int64_t> ConstExtent(const For& loop);

// Whether the threads of a team execute the loop's iterations, in a function of their own. `in_team`: such a
// loop is around it.
bool IsForTeam(const For& loop, bool in_team);

// Whether values of several iterations meet in what the loop stores, so that its store is none of a vector of
// lanes. REQUIRES: the loop has its form.
bool StoresShuffled(const For& loop);

}  // namespace mycc
