// Emits AMX products, whose sums stay in tile registers over the loops of a reduction.
//
//   for i in 32: for j in 32: acc[i, j] = 0          tilezero x 4
//   for k in 8:                                 ->   for k in 8: 2 tiles of a, 2 of b, 4 products
//     mma amx.bf16 32x32x32: acc += a * b            tilestored x 4: y
//   for i in 32: for j in 32: y[.., ..] = acc[i, j]
//
// The emitter numbers the registers itself, so nothing spills. Each function loads one tile configuration at
// its entry, the most used one of its regions. A region with another one loads it, and restores the
// function's at its end. The remainder of the depth is computed in vectors (kernel_mma.cc), from the same
// operands.
#include <algorithm>
#include <map>

#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/kernel_flow.h"
#include "codegen/llvm/loop_facts.h"
#include "codegen/llvm/tile_copies.h"
#include "codegen/schedule/instructions.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

namespace mycc {

using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

namespace {

constexpr int64_t kDepthBytes = 64;  // bytes of a tile's row

intrinsic::ID ProductOf(DType a, DType b) {
  if (a == DType::kBF16) return intrinsic::x86_tdpbf16ps;
  if (a == DType::kI8) return b == DType::kI8 ? intrinsic::x86_tdpbssd : intrinsic::x86_tdpbsud;
  return b == DType::kI8 ? intrinsic::x86_tdpbusd : intrinsic::x86_tdpbuud;
}

TileGrid GridOf(const Mma& mma) { return {mma.m, mma.n, mma.a.block_rows}; }

bool Touches(const Stmt& root, const BufferNode& buffer) {
  bool touches = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    ForEachBuffer(stmt, [&](const Buffer& other) { touches |= other.get() == &buffer; });
    return !touches;
  });
  return touches;
}

}  // namespace

// Whether the products have whole depths of tiles, fit the registers, and read a along its memory.
bool IsForTileRegisters(const std::vector<const Mma*>& products) {
  return std::all_of(products.begin(), products.end(), [](const Mma* mma) {
    return InstructionNamed(mma->instruction)->kind == InstructionClass::kTile && GridOf(*mma).fits() &&
           mma->k * DTypeBytes(mma->a.buffer->dtype) == kDepthBytes && mma->a.col_stride == mma->group &&
           mma->b.col_stride == mma->group;
  });
}

// Statements before and after a region that only move its sums are executed by tile registers too.
void LlvmKernelEmitter::EmitSequence(const Seq& seq) {
  for (size_t s = 0; s < seq.stmts.size();) {
    const size_t done = EmitTileSequence(seq, s);
    if (done == 0) Statement(seq.stmts[s]);
    s += std::max<size_t>(done, 1);
  }
}

// Emits a region with the statements that begin and end it. Returns the number of statements from s on that
// it covers; 0 when there is no region.
size_t LlvmKernelEmitter::EmitTileSequence(const Seq& seq, size_t s) {
  if (in_tiles_ || s + 1 >= seq.stmts.size() || seq.stmts[s + 1]->kind == StmtKind::kSeq) return 0;
  const std::vector<const Mma*> products = ProductsOfOneAccumulator(seq.stmts[s + 1]);
  if (products.empty() || !IsForTileRegisters(products)) return 0;
  const Mma& mma = *products[0];
  if (!BeginsTiles(seq.stmts[s], mma)) return 0;
  // The sums stay in registers to the end if no other statement reads them.
  const TileView* destination = nullptr;
  if (s + 2 < seq.stmts.size()) {
    const std::optional<TileView> stored = StoresSums(seq.stmts[s + 2], mma);
    const bool last = std::none_of(seq.stmts.begin() + static_cast<ptrdiff_t>(s) + 3, seq.stmts.end(),
                                   [&](const Stmt& stmt) { return Touches(stmt, *mma.acc.buffer); });
    if (stored && last) destination = &tile_views_.emplace_back(*stored);
  }
  memo_.assign(1, {});
  EmitTileRegion(seq.stmts[s + 1], mma, seq.stmts[s], destination ? *destination : mma.acc);
  return destination ? 3 : 2;
}

bool LlvmKernelEmitter::BeginsTiles(const Stmt& stmt, const Mma& mma) {
  if (const If* choice = DynAs<If>(stmt))
    return choice->otherwise && BeginsTiles(choice->then, mma) && BeginsTiles(choice->otherwise, mma);
  return SetsSumsToZero(stmt, mma) || LoadsSums(stmt, mma);
}

// Visits the tiles of the sums: register, pointer, and bytes between rows in `view`.
template <typename Visit>
void LlvmKernelEmitter::EachSumTile(const Mma& mma, const TileView& view, const Visit& visit) {
  const TileGrid grid = GridOf(mma);
  const Access access = AccessOf(view.buffer, view.indices, &view);
  const int64_t size = DTypeBytes(access.dtype);
  for (int i = 0; i < grid.rows(); ++i) {
    for (int j = 0; j < grid.columns(); ++j) {
      const int64_t element = grid.FirstRow(i) * view.row_stride + j * TileGrid::kRows;
      visit(b_.getInt8(grid.Sum(i, j)), ByteOffset(access.pointer, element * size),
            b_.getInt64(view.row_stride * size));
    }
  }
}

void LlvmKernelEmitter::LoadSumTiles(const Mma& mma, const TileView& view) {
  EachSumTile(mma, view, [&](Value* tile, Value* pointer, Value* stride) {
    b_.CreateIntrinsic(intrinsic::x86_tileloadd64, {}, {tile, pointer, stride});
  });
}

void LlvmKernelEmitter::BeginTiles(const Stmt& stmt, const Mma& mma) {
  if (const If* choice = DynAs<If>(stmt)) {
    EmitBranch(
        b_, Emit(choice->condition), [&] { BeginTiles(choice->then, mma); },
        [&] { BeginTiles(choice->otherwise, mma); });
    return;
  }
  if (const std::optional<TileView> view = LoadsSums(stmt, mma))
    return LoadSumTiles(mma, tile_views_.emplace_back(*view));
  const TileGrid grid = GridOf(mma);
  for (int tile = 0; tile < grid.rows() * grid.columns(); ++tile)
    b_.CreateIntrinsic(intrinsic::x86_tilezero, {}, {b_.getInt8(tile)});
}

// A store to a cache line that is not in the cache delays later stores; a prefetch for writing delays
// nothing.
void LlvmKernelEmitter::FetchSums(const Mma& mma, const TileView& destination) {
  const Access access = AccessOf(destination.buffer, destination.indices, &destination);
  const int64_t size = DTypeBytes(access.dtype);
  for (int64_t row = 0; row < mma.m; ++row) {
    for (int64_t column = 0; column < mma.n; column += TileGrid::kRows)
      Fetch(ByteOffset(access.pointer, (row * destination.row_stride + column) * size), /*to_write=*/true);
  }
}

// `begin`: a statement for which BeginsTiles is true; null when the accumulator has the sums so far.
void LlvmKernelEmitter::EmitTileRegion(const Stmt& stmt, const Mma& mma, const Stmt& begin,
                                       const TileView& destination) {
  TileUse use{GridOf(mma).Configuration(), runs_, nullptr, nullptr};
  use.before = LoadTileConfiguration(use.configuration);
  if (begin) {
    BeginTiles(begin, mma);
  } else {
    LoadSumTiles(mma, mma.acc);
  }
  if (mma.fetches_sums) FetchSums(mma, destination);
  in_tiles_ = true;
  Statement(stmt);
  in_tiles_ = false;
  memo_.assign(1, {});
  EachSumTile(mma, destination, [&](Value* tile, Value* pointer, Value* stride) {
    b_.CreateIntrinsic(intrinsic::x86_tilestored64, {}, {tile, pointer, stride});
  });
  use.after = LoadTileConfiguration(use.configuration);
  tile_uses_.push_back(use);
}

void LlvmKernelEmitter::EmitTileProducts(const Mma& mma) {
  const TileGrid grid = GridOf(mma);
  const Access a = AccessOf(mma.a.buffer, mma.a.indices, &mma.a);
  const Access b = AccessOf(mma.b.buffer, mma.b.indices, &mma.b);
  const auto load = [&](int tile, const Access& access, int64_t element, int64_t row_stride) {
    const int64_t size = DTypeBytes(access.dtype);
    b_.CreateIntrinsic(
        intrinsic::x86_tileloadd64, {},
        {b_.getInt8(tile), ByteOffset(access.pointer, element * size), b_.getInt64(row_stride * size)});
  };
  const intrinsic::ID product = ProductOf(a.dtype, b.dtype);
  FetchAhead(a, mma.a, mma.m, mma.a_ahead);
  FetchAhead(b, mma.b, (mma.k + mma.group - 1) / mma.group, mma.b_ahead);
  const auto load_a = [&](int i) { load(grid.A(i), a, mma.a.Row(grid.FirstRow(i)), mma.a.row_stride); };
  const auto load_b = [&](int j) { load(grid.B(j), b, j * TileGrid::kRows * mma.group, mma.b.row_stride); };
  for (int passing = 0; passing < grid.passing(); ++passing) {
    grid.keeps_a() ? load_b(passing) : load_a(passing);
    for (int kept = 0; kept < grid.kept(); ++kept) {
      if (passing == 0) grid.keeps_a() ? load_a(kept) : load_b(kept);
      const int i = grid.keeps_a() ? kept : passing, j = grid.keeps_a() ? passing : kept;
      b_.CreateIntrinsic(product, {},
                         {b_.getInt8(grid.Sum(i, j)), b_.getInt8(grid.A(i)), b_.getInt8(grid.B(j))});
    }
  }
}

// The constant in memory for a configuration; the module has one for each.
Value* LlvmKernelEmitter::TileConfiguration(const TileGrid::Bytes& bytes) {
  llvm::Constant* value = llvm::ConstantDataArray::get(b_.getContext(), bytes);
  for (llvm::GlobalVariable& global : kernel_.module.globals()) {
    if (global.hasInitializer() && global.getInitializer() == value) return &global;
  }
  auto* global = new llvm::GlobalVariable(kernel_.module, value->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::InternalLinkage, value, "tile_configuration");
  global->setAlignment(llvm::Align(64));
  return global;
}

llvm::CallInst* LlvmKernelEmitter::LoadTileConfiguration(const TileGrid::Bytes& configuration) {
  return b_.CreateIntrinsic(intrinsic::x86_ldtilecfg, {}, {TileConfiguration(configuration)});
}

// Loads the most executed configuration for the whole function, and removes the loads of regions that use it.
void LlvmKernelEmitter::ConfigureTiles() {
  std::map<TileGrid::Bytes, double> runs;
  for (const TileUse& use : tile_uses_) runs[use.configuration] += use.runs;
  const TileGrid::Bytes& most = std::max_element(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
                                  return a.second < b.second;
                                })->first;
  for (const TileUse& use : tile_uses_) {
    if (use.configuration == most) {
      use.before->eraseFromParent();
      use.after->eraseFromParent();
    } else {
      use.after->setArgOperand(0, TileConfiguration(most));
    }
  }
  const Builder::InsertPointGuard guard(b_);
  b_.SetInsertPoint(entry_->getTerminator());
  LoadTileConfiguration(most);
  for (llvm::Instruction* call : after_regions_) {
    b_.SetInsertPoint(call->getNextNode());
    LoadTileConfiguration(most);
  }
}

// A parallel region also runs on this thread, and releases its tiles.
void LlvmKernelEmitter::Return() {
  if (!tile_uses_.empty()) {
    ConfigureTiles();
    b_.CreateIntrinsic(intrinsic::x86_tilerelease, {}, {});
  }
  b_.CreateRetVoid();
}

}  // namespace mycc
