// Estimates the number of instructions that a body becomes after unrolling, by which passes bound code size.
#include <algorithm>

#include "codegen/expr/integers.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

// On a CPU most of an index folds into the address, or is common to neighbouring copies.
constexpr double kCpuLoadNodes = 3;

// Moves of the sums of a region, about: one for each tile register.
constexpr double kTileMove = 8;

// A condition over variables of unrolled loops only is a constant in each copy of the code, so one arm is
// left.
double CountNodes(const Expr& expr, const VarSet& unrolled, const Target& target) {
  if (expr->op == Op::kLoad && target.kind == TargetKind::kCpu) return kCpuLoadNodes;
  if (expr->op == Op::kSelect && UsesOnly(expr->args[0], unrolled)) {
    return std::max(CountNodes(expr->args[1], unrolled, target), CountNodes(expr->args[2], unrolled, target));
  }
  double nodes = 1;
  for (const Expr& arg : expr->args) nodes += CountNodes(arg, unrolled, target);
  return nodes;
}

double VectorsIn(double elements, int element_bytes, const Target& target) {
  return std::max(1.0, elements * element_bytes / VectorBytes(target));
}

// `unrolled` grows on the way down; a variable has one loop.
double Estimate(const Stmt& stmt, const Target& target, VarSet* unrolled) {
  if (const For* loop = DynAs<For>(stmt)) {
    if (loop->loop_kind == LoopKind::kUnroll) unrolled->insert(loop->var.get());
    const double body = Estimate(loop->body, target, unrolled);
    const double extent = static_cast<double>(loop->var->extent);
    if (loop->loop_kind == LoopKind::kUnroll) return body * extent;
    // Long vector loops stay loops around a few vectors.
    if (loop->loop_kind == LoopKind::kVector) return body * std::min(VectorsIn(extent, 4, target), 8.0);
    return body + 4;
  }
  if (const Store* store = DynAs<Store>(stmt)) {
    double nodes = CountNodes(store->value, *unrolled, target);
    if (target.kind == TargetKind::kCpu) return nodes + kCpuLoadNodes;
    for (const Expr& index : store->indices) nodes += CountNodes(index, *unrolled, target);
    return nodes;
  }
  if (const If* branch = DynAs<If>(stmt); branch != nullptr && UsesOnly(branch->condition, *unrolled)) {
    const double then = Estimate(branch->then, target, unrolled);
    return branch->otherwise ? std::max(then, Estimate(branch->otherwise, target, unrolled)) : then;
  }
  if (stmt->kind == StmtKind::kTileMove) return kTileMove;  // its nest is not emitted
  const Mma* mma = DynAs<Mma>(stmt);
  if (mma != nullptr && target.kind == TargetKind::kCuda) {
    // For each warp: instructions of 16 x 8 elements and 32 bytes of depth, and loads of their fragments.
    const int64_t depth_bytes = mma->k * DTypeBytes(mma->a.buffer->dtype);
    const double tiles = static_cast<double>(mma->m * mma->n * depth_bytes) / (16 * 8 * 32);
    return 2 * tiles / (mma->warps.rows * mma->warps.columns);
  }
  const Instruction* row = mma == nullptr ? nullptr : mma->row();
  if (row != nullptr && row->in_tiles() && mma->k == row->k) {
    // A product and up to two loads for every pair of tiles; the sums stay in registers.
    return 3 * VectorsIn(static_cast<double>(mma->n), DTypeBytes(row->accumulator), target) *
           static_cast<double>(CeilDiv(mma->m, row->m));
  }
  if (mma != nullptr) {
    const double vectors = VectorsIn(static_cast<double>(mma->n), DTypeBytes(mma->acc.buffer->dtype), target);
    return static_cast<double>(mma->m * mma->k) * (vectors + 1) + static_cast<double>(mma->m) * vectors * 2;
  }
  double sum = 0;
  for (const Stmt& child : Children(stmt)) sum += Estimate(child, target, unrolled);
  return sum;
}

}  // namespace

double EstimateInstructions(const Stmt& body, const Target& target) {
  VarSet unrolled;
  return Estimate(body, target, &unrolled);
}

}  // namespace mycc
