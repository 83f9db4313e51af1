// Emits AMX products, whose sums stay in tile registers over the loops of a region.
//
//   zero tiles of acc                                tilezero x 4
//   for k in 8:                                 ->   for k in 8: 2 tiles of a, 2 of b, 4 products
//     mma amx.bf16 32x32x32: acc += a * b            tilestored x 4: y
//   store tiles to y
//
// The registers have numbers here already (tile_grid.h), so nothing spills. A step that is less deep than its
// region, the rest of the depth, reads copies of its operands' tiles that zeros fill up.
#include "codegen/ir/visit.h"
#include "codegen/llvm/kernel_emitter.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {
namespace {

// The row's intrinsic, with the signs of the operands in its name.
intrinsic::ID ProductOf(const Instruction& row, DType a, DType b) {
  std::string name = row.emitter;
  for (const DType dtype : {a, b}) {
    if (const size_t sign = name.find('?'); sign != std::string::npos)
      name[sign] = dtype == DType::kU8 ? 'u' : 's';
  }
  return IntrinsicNamed(name);
}

constexpr int64_t kCopyStride = 64;  // bytes between rows of a tile on the stack

}  // namespace

// Tiles that run on through several blocks go through the stack: rows of blocks are copied from there to the
// tensor or back, rows between blocks are not.
void LlvmKernelEmitter::EmitTileMove(const TileMove& tile_move) {
  const TileGrid grid = GridOf(*tiled_);
  if (tile_move.move == TileMove::kZero) {
    for (int tile = 0; tile < grid.rows() * grid.columns(); ++tile)
      b_.CreateIntrinsic(intrinsic::x86_tilezero, {}, {b_.getInt8(tile)});
    return;
  }
  const bool stores = tile_move.move == TileMove::kStore;
  const Access access = AccessOf(tile_move.view);
  const int64_t row_stride = tile_move.view.row_stride;
  const auto element = [&](int64_t row, int j) {
    return ElementAt(access, row * row_stride + j * grid.TileColumns());
  };
  const auto each_tile = [&](const auto& visit) {
    for (int i = 0; i < grid.rows(); ++i) {
      for (int j = 0; j < grid.columns(); ++j) visit(i, j);
    }
  };
  const auto move_tiles = [&](const auto& pointer, int64_t stride) {
    each_tile([&](int i, int j) {
      b_.CreateIntrinsic(stores ? intrinsic::x86_tilestored64 : intrinsic::x86_tileloadd64, {},
                         {b_.getInt8(grid.Sum(i, j)), pointer(i, j), b_.getInt64(stride)});
    });
  };
  if (grid.block_pitch == 0) {
    return move_tiles([&](int i, int j) { return element(grid.FirstRow(i), j); },
                      row_stride * access.align());
  }
  const int64_t tile_bytes = grid.TileRows() * kCopyStride;
  auto* vector = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(grid.TileColumns()));
  Value* tiles = BytesOnStack(grid.rows() * grid.columns() * tile_bytes);
  const auto copy = [&](int i, int j) { return ByteOffset(tiles, grid.Sum(i, j) * tile_bytes); };
  if (stores) move_tiles(copy, kCopyStride);
  each_tile([&](int i, int j) {
    Value* tile = copy(i, j);
    const int columns = static_cast<int>(grid.ColumnsOf(j));
    for (int64_t r = 0; r < grid.RowsOf(i); ++r) {
      const int64_t sum_row = grid.SumRow(i, r);
      if (sum_row < 0) continue;
      Value* row = ByteOffset(tile, r * kCopyStride);
      if (stores) {
        Value* sums = b_.CreateAlignedLoad(vector, row, llvm::Align(kCopyStride));
        StoreFirst(access, sums, element(sum_row, j), columns);
      } else {
        Value* sums = LoadFirst(access, vector, element(sum_row, j), columns);
        b_.CreateAlignedStore(sums, row, llvm::Align(kCopyStride));
      }
    }
  });
  if (!stores) move_tiles(copy, kCopyStride);
}

// A store to a cache line that is not in the cache delays later stores; a prefetch for writing delays
// nothing.
void LlvmKernelEmitter::FetchSums(const Mma& mma, const TileView& destination) {
  const Access access = AccessOf(destination);
  for (int64_t row = 0; row < mma.m; ++row) {
    for (int64_t column = 0; column < mma.n; column += mma.row()->n)
      Fetch(ElementAt(access, row * destination.row_stride + column), /*to_write=*/true);
  }
}

void LlvmKernelEmitter::EmitTileRegion(const TileRegion& region) {
  tiles_ = &region;
  tiled_ = FirstOf<Mma>(region.products, [](const Mma&) { return true; });
  Value* configuration = TileConfiguration(GridOf(*tiled_, region.depth_bytes).Configuration());
  if (region.configures) LoadTileConfiguration(configuration);
  // In unrolled loops, conditions may leave none but regions that configure.
  if (!region.configures || configuration_ == nullptr) configuration_ = configuration;
  Statement(region.begin);
  memo_.assign(1, {});
  if (tiled_->fetches_sums) FetchSums(*tiled_, As<TileMove>(region.end).view);
  CopyFixedTiles(region.products);
  Statement(region.products);
  copied_tiles_.clear();
  Statement(region.end);
  if (region.configures) restores_.push_back(LoadTileConfiguration(configuration));
  tiles_ = nullptr, tiled_ = nullptr;
}

// Makes the copies of fixed tiles: a tile that is loaded soon after it was stored waits until the stores are
// in the cache.
void LlvmKernelEmitter::CopyFixedTiles(const Stmt& products) {
  VisitEach<Mma>(products, [&](const Mma& mma) {
    if (!mma.is_fixed) return;
    const TileGrid grid = GridOf(mma, tiles_->depth_bytes);
    const Access a = AccessOf(mma.a), b = AccessOf(mma.b);
    auto& [of_a, of_b] = copied_tiles_[&mma];
    for (int i = 0; i < grid.rows(); ++i) of_a.push_back(TileOf(mma, a, grid, /*of_b=*/false, i));
    for (int j = 0; j < grid.columns(); ++j) of_b.push_back(TileOf(mma, b, grid, /*of_b=*/true, j));
  });
}

// Copies rows of an operand's tile, `bytes` of each, into memory of its own on the stack, where zeros fill up
// the rows and the tile's other rows. A `last_mask` tells which bytes of the last row are read. Returns that
// memory.
Value* LlvmKernelEmitter::CopyOfTile(Access access, const std::vector<Value*>& rows, int64_t bytes,
                                     int64_t tile_rows, llvm::Constant* last_mask) {
  access.dtype = DType::kU8;
  auto* whole = llvm::FixedVectorType::get(b_.getInt8Ty(), kCopyStride);
  Value* memory = BytesOnStack(tile_rows * kCopyStride);
  const auto store = [&](Value* row, int64_t r) {
    b_.CreateAlignedStore(row, ByteOffset(memory, r * kCopyStride), llvm::Align(kCopyStride));
  };
  {
    const Builder::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_->getTerminator());
    for (auto r = static_cast<int64_t>(rows.size()); r < tile_rows; ++r)
      store(llvm::Constant::getNullValue(whole), r);
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    Value* row = last_mask != nullptr && r + 1 == rows.size()
                     ? LoadMasked(access, whole, rows[r], last_mask)
                     : LoadFirst(access, whole, rows[r], static_cast<int>(bytes));
    store(row, static_cast<int64_t>(r));
  }
  return memory;
}

// The memory that a tile is loaded from: of the grid's tiles of a, or of b, each of whose rows has a group of
// the depth.
LlvmKernelEmitter::TileRows LlvmKernelEmitter::TileOf(const Mma& mma, const Access& access,
                                                      const TileGrid& grid, bool of_b, int tile) {
  const int64_t stride = of_b ? mma.b.row_stride : mma.a.row_stride;
  const auto row = [&](int64_t r) {
    if (of_b) return ElementAt(access, r * stride + tile * grid.TileColumns() * mma.group);
    const int64_t of_grid = grid.FirstRow(tile) + r;
    return ElementAt(access, grid.block_pitch > 0 ? of_grid * stride : mma.a.Row(of_grid));
  };
  // Integers beyond whole groups meet zeros of b, and are no NaN.
  const bool may_read_on =
      !of_b && access.place->over_read && !IsFloat(access.dtype) && mma.k % mma.group == 0;
  if (DepthBytes(mma) == grid.Depth() || may_read_on) return {row(0), stride * access.align()};
  std::vector<Value*> rows;
  const int64_t count = of_b ? CeilDiv(mma.k, mma.group) : grid.RowsOf(tile);
  for (int64_t r = 0; r < count; ++r) rows.push_back(row(r));
  if (!of_b) return {CopyOfTile(access, rows, DepthBytes(mma), count, /*last_mask=*/nullptr), kCopyStride};
  const int64_t columns = grid.ColumnsOf(tile), group_bytes = mma.group * access.align();
  // The depth's last group may be partial. Packed operands have zeros after it; tensors have other elements
  // there, or end.
  const int64_t partial_bytes = access.place->over_read ? 0 : DepthBytes(mma) % group_bytes;
  llvm::Constant* last_mask = nullptr;
  if (partial_bytes > 0) {
    last_mask = FirstLanes(static_cast<int>(columns), static_cast<int>(kCopyStride / group_bytes),
                           static_cast<int>(group_bytes), static_cast<int>(partial_bytes));
  }
  return {CopyOfTile(access, rows, columns * group_bytes, grid.Depth() / group_bytes, last_mask),
          kCopyStride};
}

void LlvmKernelEmitter::EmitTileProducts(const Mma& mma) {
  const TileGrid grid = GridOf(mma, tiles_->depth_bytes);
  const Access a = AccessOf(mma.a), b = AccessOf(mma.b);
  FetchAhead(a, mma.a, mma.m, mma.a_ahead);
  FetchAhead(b, mma.b, CeilDiv(mma.k, mma.group), mma.b_ahead);
  const auto copied = copied_tiles_.find(&mma);
  const auto load = [&](bool of_b, int tile) {
    const TileRows rows = copied == copied_tiles_.end() ? TileOf(mma, of_b ? b : a, grid, of_b, tile)
                          : of_b                        ? copied->second.b[tile]
                                                        : copied->second.a[tile];
    b_.CreateIntrinsic(
        intrinsic::x86_tileloadd64, {},
        {b_.getInt8(of_b ? grid.B(tile) : grid.A(tile)), rows.first, b_.getInt64(rows.stride)});
  };
  const intrinsic::ID product = ProductOf(*mma.row(), a.dtype, b.dtype);
  const bool keeps_b = !grid.keeps_a();
  for (int passing = 0; passing < grid.passing(); ++passing) {
    load(/*of_b=*/!keeps_b, passing);
    for (int kept = 0; kept < grid.kept(); ++kept) {
      if (passing == 0) load(/*of_b=*/keeps_b, kept);
      const int i = keeps_b ? passing : kept, j = keeps_b ? kept : passing;
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

llvm::CallInst* LlvmKernelEmitter::LoadTileConfiguration(Value* configuration) {
  return b_.CreateIntrinsic(intrinsic::x86_ldtilecfg, {}, {configuration});
}

// Loads the function's configuration at its entry, and after what has left another one or none.
void LlvmKernelEmitter::ConfigureTiles() {
  for (llvm::CallInst* restore : restores_) restore->setArgOperand(0, configuration_);
  const Builder::InsertPointGuard guard(b_);
  b_.SetInsertPoint(entry_->getTerminator());
  LoadTileConfiguration(configuration_);
  for (llvm::Instruction* call : after_regions_) {
    // A call may be the last instruction so far.
    b_.SetInsertPoint(call->getParent(), std::next(call->getIterator()));
    LoadTileConfiguration(configuration_);
  }
}

// A parallel region also runs on this thread, and releases its tiles.
void LlvmKernelEmitter::Return() {
  if (configuration_ != nullptr) {
    ConfigureTiles();
    b_.CreateIntrinsic(intrinsic::x86_tilerelease, {}, {});
  }
  b_.CreateRetVoid();
}

}  // namespace mycc
