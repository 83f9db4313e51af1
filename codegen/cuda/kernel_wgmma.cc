// Emits products of warpgroups: wgmma, whose operands are tiles in shared memory, or the left one in
// registers.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/cuda/product_functions.h"

namespace mycc {
namespace {

// A matrix operand as a tile in shared memory, in panels as wide as the swizzle.
struct SharedTile {
  Layout layout;                 // of the buffer
  int64_t element = 1;           // bytes
  bool depth_contiguous = true;  // rows run along the depth (K-major); otherwise the depth runs across rows
  int64_t depth_step = 1, other_step = 1;  // of the view, in numbers of elements

  // The bytes from one panel to the next.
  int64_t panel_bytes() const { return layout.dims.back().front().stride * element; }
  int64_t swizzle_bytes() const { return layout.SwizzledRow() * element; }
  // The arguments of wgmma_tile: besides the address, the distances between panels and between groups of 8
  // rows. The hardware's modes are 1, 2, 3 for swizzles of 128, 64, 32 bytes. Along the depth there is one
  // panel.
  std::string Descriptor(const std::string& address) const {
    return absl::StrCat("<", 4 - layout.swizzle.bits, ">(", address, ", ",
                        depth_contiguous ? 16 : panel_bytes(), ", ", 8 * swizzle_bytes(), ");");
  }
  // The offset in bytes of the part at `depth` elements along the depth, and `other` elements along the other
  // dimension.
  int64_t Offset(int64_t depth, int64_t other) const {
    return layout.Flat(depth * depth_step + other * other_step) * element;
  }
};

// The tile that a warpgroup reads as it is.
absl::StatusOr<SharedTile> SharedTileOf(const Instruction& row, const TileView& view, int64_t depth_step,
                                        int64_t other_step) {
  const BufferNode& buffer = *view.buffer;
  SharedTile tile{buffer.layout, DTypeBytes(buffer.dtype), depth_step == 1, depth_step, other_step};
  if (depth_step != 1 && other_step != 1)
    return Refusal(row.name, ": an operand is contiguous along neither of its dimensions");
  if (DTypeBytes(row.operand) != 2 && !tile.depth_contiguous)
    return Refusal(row.name, ": an operand is not contiguous along the depth");
  if (buffer.layout.swizzle.bits == 0 || buffer.layout.dims.back().size() != 2) {
    return Refusal(row.name, " reads swizzled tiles; ", buffer.name, " has rows of ",
                   buffer.shape.back() * tile.element, " bytes and swizzle ", tile.swizzle_bytes(),
                   ": expected 32, 64 or 128 that divides them");
  }
  return tile;
}

// A partial sum has 64 rows, and half of the columns if there are more than 128, so that it needs few
// registers besides those of the sums.
FragmentLayout PartLayout(const FragmentLayout& layout) {
  const int64_t columns = layout.columns > 128 ? layout.columns / 2 : layout.columns;
  return {layout.unit.rows, columns, WarpGrid{1, 1}, layout.unit};
}

// A thread's sums in one statement, at most. All row tiles are one statement if they have no more: the
// compiler then sets all sums to zero before the first product, and does not wait between the tiles. With
// more sums, one statement compiles longer than one for each tile.
constexpr int64_t kMostSumsOfStatement = 128;

// The part of a product that one statement computes: over `steps` steps of the depth from `depth` on, of
// `tiles` row tiles from `row` on, and of the columns from `column` on.
struct Part {
  int64_t steps, tiles, depth = 0, row = 0, column = 0;
};

// How far its parts lie from the descriptors, in units of 16 bytes (product_functions.h). `a`: null when it
// is in registers.
std::string OffsetsOf(const Instruction& row, const Part& part, const SharedTile* a, const SharedTile& b) {
  std::string offsets;
  for (int64_t depth = part.depth; depth < part.depth + part.steps * row.k; depth += row.k) {
    for (int64_t tile = 0; tile < part.tiles; ++tile) {
      if (a != nullptr) absl::StrAppend(&offsets, ", ", a->Offset(depth, part.row + tile * row.m) / 16);
      if (tile == 0) absl::StrAppend(&offsets, ", ", b.Offset(depth, part.column) / 16);
    }
  }
  return offsets;
}

}  // namespace

// Emits the products. Those of partial sums are complete afterwards; others are asynchronous.
void KernelEmitter::EmitWgmma(const Mma& mma, const Instruction& row) {
  if (mma.is_async != row.is_async)
    return Fail(row.name, mma.is_async ? " adds up partial sums, and cannot be asynchronous"
                                       : " is asynchronous, and nothing waits for it");
  const bool of_registers = PlaceOf(mma.a.buffer).in_registers;
  const absl::StatusOr<SharedTile> b = SharedTileOf(row, mma.b, mma.b.row_stride, mma.b.col_stride);
  absl::StatusOr<SharedTile> a = SharedTile();
  if (!of_registers) a = SharedTileOf(row, mma.a, mma.a.col_stride, mma.a.row_stride);
  for (const absl::Status& status : {a.status(), b.status()}) status_.Update(status);
  if (!status_.ok()) return;
  prelude_.Use("wgmma_tile");

  const FragmentLayout& layout = LayoutOfAccumulator(mma);
  const std::string sums = PlaceOf(mma.acc.buffer).name;
  const auto transposed = [](const SharedTile& tile) { return tile.depth_contiguous ? ", 0" : ", 1"; };
  // `unit`: the layout of the sums `to`; `tile`: the first row tile in them.
  const auto multiply = [&](const std::string& to, const FragmentLayout& unit, int64_t tile, const Part& part,
                            bool adds) {
    const bool of_bytes = DTypeBytes(row.operand) != 2;
    Line(prelude_.Add(WarpgroupProduct(row, unit, part.tiles, part.steps, of_registers)), "<", tile, ", ",
         adds ? 1 : 0, of_bytes || of_registers ? "" : transposed(*a), of_bytes ? "" : transposed(*b),
         OffsetsOf(row, part, of_registers ? nullptr : &*a, *b), ">(", to, ", a, b);");
  };
  OpenBlock();
  if (of_registers) {
    PackOperands(mma, row);
  } else {
    // A warpgroup's rows of a.
    const int64_t rows_of_group = layout.rows / layout.warps.rows;
    const std::string group =
        layout.warps.rows == 1 ? "" : absl::StrCat(" + ", Warpgroup(), " * ", a->Offset(0, rows_of_group));
    Line("const unsigned long long a = wgmma_tile",
         a->Descriptor(SharedAddress(mma.a.buffer, mma.a.indices) + group));
  }
  Line("const unsigned long long b = wgmma_tile", b->Descriptor(SharedAddress(mma.b.buffer, mma.b.indices)));
  if (row.partial_depth == 0) {
    Line(Call("wgmma_fence"), ";");
    const int64_t tiles = layout.registers() <= kMostSumsOfStatement ? layout.row_tiles() : 1;
    for (int64_t tile = 0; tile < layout.row_tiles(); tile += tiles)
      multiply(sums, layout, tile, {mma.k / row.k, tiles, 0, tile * row.m}, !mma.first);
    return Close();
  }
  const FragmentLayout partial = PartLayout(layout);
  // Registers of one row of the thread's elements.
  const int64_t next_row = row.sums.fragment.Steps(1).front().row;
  const int64_t run = partial.Register(next_row, 0), pitch = layout.Register(next_row, 0);
  Line("float part[", partial.registers(), "];");
  for (int64_t depth = 0; depth < mma.k; depth += row.partial_depth) {
    const int64_t steps = std::min<int64_t>(row.partial_depth, mma.k - depth) / row.k;
    for (int64_t at = 0; at < layout.row_tiles() * row.m; at += row.m) {
      for (int64_t column = 0; column < layout.columns; column += partial.columns) {
        Line(Call("wgmma_fence"), ";");
        multiply("part", partial, 0, {steps, 1, depth, at, column}, /*adds=*/false);
        Line(Call("wgmma_commit"), ";");
        Line(prelude_.Use("wgmma_wait"), "<0>();");
        Line(prelude_.Add(CompleteSums(row.accumulator, partial.registers())), "(part);");
        Line(prelude_.Use("add_part"), "<", layout.Register(at, column), ", ", run, ", ", pitch, ">(", sums,
             ", part);");
      }
    }
  }
  Close();
}

void KernelEmitter::EmitWaitProducts(const WaitProducts& wait) {
  Line(prelude_.Use("wgmma_wait"), "<", wait.pending, ">();");
  if (wait.after_loop) Line(Call("keep_behind"), ";");
  for (const Buffer& sums : wait.sums) {
    const Place& place = PlaceOf(sums);
    Line(prelude_.Add(CompleteSums(sums->dtype, place.fragment->registers())), "(", place.name, ");");
  }
}

}  // namespace mycc
