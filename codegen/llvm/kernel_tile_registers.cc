// AMX: sums stay in tile registers over the loops of a reduction.
//
//   for i in 32: for j in 32: acc[i, j] = 0          tilezero x 4
//   for k in 8:                                 ->   for k in 8: 2 tiles of a, 2 of b, 4 products
//     mma amx.bf16 32x32x32: acc += a * b            tilestored x 4: acc
//
// Registers are named by number: which sum is where is the emitter's choice, so nothing spills. Every
// function loads the configuration of whole tiles once, at its entry; a region with rows or columns left over
// loads its own and, at its end, that of whole tiles again. What is left of the depth is computed in vectors
// (kernel_mma.cc), from the same operands.
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/loop_facts.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

namespace mycc {

using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

namespace {

constexpr int64_t kDepthBytes = 64;  // of a tile's rows

intrinsic::ID ProductOf(DType a, DType b) {
  if (a == DType::kBF16) return intrinsic::x86_tdpbf16ps;
  if (a == DType::kI8) return b == DType::kI8 ? intrinsic::x86_tdpbssd : intrinsic::x86_tdpbsud;
  return b == DType::kI8 ? intrinsic::x86_tdpbusd : intrinsic::x86_tdpbuud;
}

}  // namespace

// Whole depths of tiles that fit the registers, a's along its memory.
bool IsForTileRegisters(const std::vector<const Mma*>& products) {
  return std::all_of(products.begin(), products.end(), [](const Mma* mma) {
    return mma->instruction.starts_with("amx.") && TileGrid{mma->m, mma->n}.fits() &&
           mma->k * DTypeBytes(mma->a.buffer->dtype) == kDepthBytes && mma->a.col_stride == mma->group &&
           mma->b.col_stride == mma->group;
  });
}

// A region whose accumulator has just been set to zero begins in registers.
void LlvmKernelEmitter::EmitSequence(const Seq& seq) {
  for (size_t s = 0; s < seq.stmts.size(); ++s) {
    if (s + 1 < seq.stmts.size() && !region_) {
      const std::vector<const Mma*> products = ProductsOfOneAccumulator(seq.stmts[s + 1]);
      if (!products.empty() && seq.stmts[s + 1]->kind != StmtKind::kSeq && IsForTileRegisters(products) &&
          IsZeroFill(seq.stmts[s], products[0]->acc.buffer, products[0]->m * products[0]->n)) {
        memo_.assign(1, {});
        EmitTileRegion(seq.stmts[++s], *products[0], /*from_zero=*/true);
        continue;
      }
    }
    Statement(seq.stmts[s]);
  }
}

void LlvmKernelEmitter::EmitTileRegion(const Stmt& stmt, const Mma& mma, bool from_zero) {
  const TileGrid grid{mma.m, mma.n};
  uses_tiles_ = true;
  if (!grid.is_full())
    b_.CreateIntrinsic(intrinsic::x86_ldtilecfg, {}, {TileConfiguration(grid.Configuration())});
  const auto each_sum = [&](const auto& visit) {
    const Access acc = AccessOf(mma.acc.buffer, mma.acc.indices, &mma.acc);
    const int64_t size = DTypeBytes(acc.dtype);
    for (int i = 0; i < grid.rows(); ++i) {
      for (int j = 0; j < grid.columns(); ++j) {
        const int64_t element = TileGrid::kRows * (i * mma.acc.row_stride + j);
        visit(b_.getInt8(grid.Sum(i, j)), ByteOffset(acc.pointer, element * size),
              b_.getInt64(mma.acc.row_stride * size));
      }
    }
  };
  each_sum([&](Value* tile, Value* pointer, Value* stride) {
    if (from_zero) {
      b_.CreateIntrinsic(intrinsic::x86_tilezero, {}, {tile});
    } else {
      b_.CreateIntrinsic(intrinsic::x86_tileloadd64, {}, {tile, pointer, stride});
    }
  });
  region_.emplace(ProductRegion{.tiles = true});
  Statement(stmt);
  region_.reset();
  memo_.assign(1, {});
  each_sum([&](Value* tile, Value* pointer, Value* stride) {
    b_.CreateIntrinsic(intrinsic::x86_tilestored64, {}, {tile, pointer, stride});
  });
  if (!grid.is_full())
    b_.CreateIntrinsic(intrinsic::x86_ldtilecfg, {}, {TileConfiguration(TileGrid::WholeConfiguration())});
}

void LlvmKernelEmitter::EmitTileProducts(const Mma& mma) {
  const TileGrid grid{mma.m, mma.n};
  const Access a = AccessOf(mma.a.buffer, mma.a.indices, &mma.a);
  const Access b = AccessOf(mma.b.buffer, mma.b.indices, &mma.b);
  const auto load = [&](int tile, const Access& access, int64_t element, int64_t row_stride) {
    const int64_t size = DTypeBytes(access.dtype);
    b_.CreateIntrinsic(
        intrinsic::x86_tileloadd64, {},
        {b_.getInt8(tile), ByteOffset(access.pointer, element * size), b_.getInt64(row_stride * size)});
  };
  const intrinsic::ID product = ProductOf(a.dtype, b.dtype);
  for (int i = 0; i < grid.rows(); ++i) {
    load(grid.A(i), a, i * TileGrid::kRows * mma.a.row_stride, mma.a.row_stride);
    for (int j = 0; j < grid.columns(); ++j) {
      if (i == 0) load(grid.B(j), b, j * TileGrid::kRows * mma.group, mma.b.row_stride);
      b_.CreateIntrinsic(product, {},
                         {b_.getInt8(grid.Sum(i, j)), b_.getInt8(grid.A(i)), b_.getInt8(grid.B(j))});
    }
  }
}

// A constant in memory, one for each configuration of the module.
Value* LlvmKernelEmitter::TileConfiguration(const std::array<uint8_t, 64>& bytes) {
  llvm::Constant* value = llvm::ConstantDataArray::get(b_.getContext(), bytes);
  for (llvm::GlobalVariable& global : kernel_.module.globals()) {
    if (global.hasInitializer() && global.getInitializer() == value) return &global;
  }
  auto* global = new llvm::GlobalVariable(kernel_.module, value->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::InternalLinkage, value, "tile_configuration");
  global->setAlignment(llvm::Align(64));
  return global;
}

// Parallel regions run on this thread too, and release its tiles.
void LlvmKernelEmitter::Return() {
  if (uses_tiles_) {
    Value* whole = TileConfiguration(TileGrid::WholeConfiguration());
    b_.CreateIntrinsic(intrinsic::x86_tilerelease, {}, {});
    const Builder::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_->getTerminator());
    b_.CreateIntrinsic(intrinsic::x86_ldtilecfg, {}, {whole});
    for (llvm::Instruction* call : after_regions_) {
      b_.SetInsertPoint(call->getNextNode());
      b_.CreateIntrinsic(intrinsic::x86_ldtilecfg, {}, {whole});
    }
  }
  b_.CreateRetVoid();
}

}  // namespace mycc
