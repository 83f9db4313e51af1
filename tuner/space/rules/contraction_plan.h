// One contraction group and one way to multiply it, in the form that the files of the contraction rule share.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/space/cpu_products.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/contraction_padding.h"
#include "tuner/space/rules/contraction_tiles.h"

namespace mycc {

// Every `step` elements of a pixel's depth are `slot` apart, and pixels `pitch`.
struct PixelLayout {
  int64_t step, slot, pitch;
};

// Everything that emission needs besides the decided values.
struct ContractionPlan {
  const Anatomy anatomy;
  Group group;
  Target target;
  int lanes;
  int64_t registers = 0;           // TileRegisters of the target
  std::string t, n;                // block that multiplies, its lane loop
  std::vector<std::string> rows;   // loops of the row axes
  std::vector<std::string> outer;  // batch and further column loops
  std::vector<int> k_order;        // reduction axes, outermost first; the last one is split
  // Another order: by the broadcast operand's addresses, a window's inner loops unrolled.
  std::vector<int> window_order;
  int64_t k_extent = 0;  // of the innermost reduction loop: its axis', or a part of it
  bool rows_fusable = false;
  int64_t line_pitch = 0;  // rows from an image line's first pixel to the next one's; 0: no whole number
  std::vector<int> prologue, epilogue;
  CpuProduct product;
  ContractionPadding padding;  // of the scalar operand, by the only stage of the prologue

  const Contraction& way() const { return product.way; }
  int64_t KGroup() const { return product.instruction.group; }
  bool InTiles() const { return product.instruction.kind == InstructionClass::kTile; }
  bool IsWindow() const { return k_order.size() > 1; }
  // Elements of the depth that lie together in a's panels: of tile registers, a step of `ku` groups.
  int64_t PanelDepth(int64_t ku) const { return InTiles() ? ku * KGroup() : KGroup(); }
  bool MustPackA() const { return product.packs_scalar; }
  // Known at run time alone, and not as the instruction takes it.
  bool MustPackB() const {
    return !way().vector.is_const && LaneDim() >= 0 && (KGroup() > 1 || !LaneContiguous());
  }
  // One stage makes the scalar operand, for this product alone, which reads it where it is made.
  bool PadsScalarAlone() const;
  // How tile registers find the pixels of such a copy, with steps of `ku` groups: no row that they load then
  // lies across the end of a cache line, which takes three times as long. nullopt: as they are.
  std::optional<PixelLayout> LayoutOfPixels(int64_t ku) const;
  // Rows that tile registers hold for some lines of an image, with `mr` pixels each: a line begins a
  // register, or, where that takes fewer of them, the rows run on through what lies between the lines.
  int64_t RowsInTile(int64_t lines, int64_t mr) const;
  bool Fits(int64_t mr, int64_t nv) const {
    return InTiles() ? FitsTileRegisters(mr, nv) : FitsRegisters(mr, nv, registers);
  }

  const Stage& stage() const { return anatomy.product(group.anchor); }
  int64_t Extent(int axis) const { return stage().axes[axis]->extent; }
  const Var& Lane() const { return stage().axes[way().cols.back()]; }
  int64_t N() const { return Lane()->extent; }
  std::string Loop(int axis) const { return LoopOf(anatomy.Loop(group.anchor, axis)); }
  std::string ReduceLoop(int axis) const { return LoopOf(anatomy.ReduceLoop(group.anchor, axis)); }
  int64_t M(bool fused) const {
    int64_t m = 1;
    for (size_t i = fused || way().rows.empty() ? 0 : way().rows.size() - 1; i < way().rows.size(); ++i)
      m *= Extent(way().rows[i]);
    return m;
  }
  // The vector operand's dimension that the lanes run along, where it can be put last; -1: it cannot.
  int LaneDim() const {
    return way().vector.is_const ? way().vector.UnitDim(Lane()) : way().vector.PlainDim(Lane());
  }
  bool LaneContiguous() const {
    const int dim = LaneDim();
    return dim >= 0 && dim == way().vector.buffer->rank() - 1;
  }
  // The output is written with a stride: its last axis is one of the rows.
  bool IsCrosswise() const {
    return !way().rows.empty() && (way().cols.empty() || way().rows.back() > way().cols.back());
  }

  // The block that multiplies, and its loops: the stage's, or that of its parts (contraction_depth.h).
  void NameLoops(const std::string& block);

 private:
  // The name of the stage's loop in the block that multiplies.
  std::string LoopOf(const std::string& loop) const { return t + loop.substr(loop.rfind('.')); }
};

ContractionPlan MakeContractionPlan(const Anatomy& anatomy, const Group& group, const Target& target,
                                    const CpuProduct& product);

// The number of loops around the innermost one that are unrolled with it, of reduction axes in this order.
size_t UnrolledOf(const std::vector<int>& order, const Stage& stage);

}  // namespace mycc
