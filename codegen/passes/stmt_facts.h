// Small analyses of statements that passes and back ends share. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "codegen/ir/pipeline_stmts.h"

namespace mycc {

// Whether a GPU's threads have the elements in registers.
inline bool IsInRegisters(const BufferNode& buffer) {
  return buffer.scope == Scope::kLocal || buffer.scope == Scope::kAccumulator;
}

// Whether the statement is an empty sequence.
bool IsEmpty(const Stmt& stmt);
// Whether the statement executes each of its children once.
bool RunsChildrenOnce(const Stmt& stmt);
// Whether the statement is a product that the pass overlap_products makes asynchronous.
bool CanRunAsync(const Stmt& stmt);

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

// The targets of a statement that contains only stores, under conditions.
enum class StoreTargets { kRegisters, kMemory, kBoth, kOther /* other statements too */ };
StoreTargets TargetsOf(const Stmt& stmt, const std::function<bool(const BufferNode&)>& in_registers);

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

// The registers of a thread for what neighbouring copies load before the first of them stores. Their loads
// take the time of one access to memory.
inline constexpr int64_t kRegistersOfCopies = 64;

// The parts of a copy by threads.
struct ThreadCopyNest {
  std::vector<const For*> loops;  // in the order in which their elements are dealt to the threads
  const Store* store;
  Expr load, condition;  // condition: null for none
  int64_t elements = 1;
  int64_t chunk = 0;  // the copy's

  int64_t chunks() const { return elements / chunk; }
  // The registers of a thread that holds one chunk.
  int64_t registers() const { return std::max<int64_t>(chunk * DTypeBytes(load->dtype) / 4, 1); }
};
// Nullopt when the copy is more than a nest of loops around a store. Points into the copy.
std::optional<ThreadCopyNest> ThreadCopyNestOf(const Copy& copy);

}  // namespace mycc
