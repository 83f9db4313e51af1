#include "tuner/space/rules/contraction_nest.h"

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/contraction_bands.h"
#include "tuner/space/rules/panels.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

void Append(const std::vector<std::string>& loops, std::vector<std::string>* order) {
  order->insert(order->end(), loops.begin(), loops.end());
}

// The nest that multiplies. Loops that there are none of are empty.
class Nest {
 public:
  Nest(ContractionPlan plan, const Values& v, TraceBuilder* b)
      : plan_(std::move(plan)),
        v_(v),
        b_(b),
        is_window_(v.at("window") != 0),
        columns_outermost_(v.at("block_order") == kColumnsOutermost),
        in_band_(v.at("bands") > 0 ? CeilDiv(BandTiles(plan_, v), v.at("bands")) : 0),
        mr_(v.at("mr")),
        nr_(v.at("nv") * plan_.lanes) {
    if (is_window_) plan_.k_order = plan_.window_order;
  }

  void Emit() {
    SkipZeros();
    SplitAxes();
    SplitRowsAndColumns();
    SplitDepth();
    Reorder();
    BindParallel();
    EmitPrologue();
    EmitOperands();
    EmitTile();
  }

 private:
  bool has_rows() const { return !plan_.rows.empty(); }

  // A product that skips all zeros has no padded image.
  void SkipZeros() {
    if (v_.at("skip") == kSkipNone) return;
    const std::string image = plan_.anatomy.name(plan_.prologue.front());
    for (const int dim : plan_.padding.outer) b_->SkipZeros(plan_.t, image, dim);
    if (v_.at("skip") != kSkipAll) return;
    for (const int dim : plan_.padding.rows) b_->SkipZeros(plan_.t, image, dim);
    b_->Inline(image);
    plan_.prologue.clear();
  }

  // The axes of groups and of a stride's phases.
  void SplitAxes() {
    const Contraction& way = plan_.way();
    if (way.groups) b_->SplitAxis(plan_.Loop(way.groups->axis), way.groups->extent);
    for (const GroupedAxis& phased : way.phases) b_->SplitAxis(plan_.Loop(phased.axis), phased.extent);
  }

  void SplitRowsAndColumns() {
    if (has_rows()) {
      m_ = v_.at("fuse") ? b_->Fuse(plan_.rows) : plan_.rows.back();
      if (!v_.at("fuse")) outer_rows_.assign(plan_.rows.begin(), plan_.rows.end() - 1);
      b_->Split(m_, {v_.at("mt"), mr_});
    }
    SplitLines();
    SplitColumns();
  }

  // The image's lines: bands of them, and those that share a register tile.
  void SplitLines() {
    const int64_t lines = v_.at("lines");
    const bool in_bands = in_band_ > 0 && !columns_outermost_;
    std::vector<int64_t> parts;
    if (in_bands) parts.push_back(in_band_);
    if (lines > 1) parts.push_back(lines);
    if (parts.empty()) return;
    const std::string row = outer_rows_.back();
    b_->Split(row, parts);
    outer_rows_.back() = SubLoop(row, 0);
    if (in_bands) outer_rows_.push_back(SubLoop(row, 1));
    if (lines > 1) lines_ = SubLoop(row, static_cast<int>(parts.size()));
  }

  void SplitColumns() {
    std::vector<int64_t> parts = {v_.at("nt"), nr_};
    if (in_band_ > 0 && columns_outermost_) parts.insert(parts.begin(), in_band_);
    b_->Split(plan_.n, parts);
    const int lane = static_cast<int>(parts.size());
    n_lane_ = SubLoop(plan_.n, lane);
    tiles_ = {SubLoop(plan_.n, lane - 1)};
    blocks_ = {SubLoop(plan_.n, lane - 2)};
  }

  void SplitDepth() {
    k_inner_ = plan_.ReduceLoop(plan_.k_order.back());
    if (!is_window_ && v_.at("kc") < plan_.k_extent) {
      b_->Split(k_inner_, {v_.at("kc")});
      k_outer_ = SubLoop(k_inner_, 0);
      k_inner_ = SubLoop(k_inner_, 1);
    }
    const bool unrolls = !is_window_ && v_.at("ku") > 1;
    std::vector<int64_t> steps;
    if (unrolls) steps.push_back(v_.at("ku"));
    if (plan_.KGroup() > 1) steps.push_back(plan_.KGroup());
    if (steps.empty()) return;
    b_->Split(k_inner_, steps);
    if (unrolls) k_unrolled_ = SubLoop(k_inner_, 1);
    if (plan_.KGroup() > 1) k_group_ = SubLoop(k_inner_, static_cast<int>(steps.size()));
    k_inner_ = SubLoop(k_inner_, 0);
  }

  // Blocks, register tiles, reduction, one tile.
  void Reorder() {
    outer_ = plan_.outer;
    if (in_band_ > 0) {
      outer_.insert(outer_.end(), outer_rows_.begin(), outer_rows_.end() - 1);
      outer_rows_ = {outer_rows_.back()};
      if (columns_outermost_) outer_.push_back(SubLoop(plan_.n, 0));
      bands_ = outer_;
    }
    Append(outer_rows_, columns_outermost_ ? &blocks_ : &outer_);
    if (has_rows()) {
      blocks_.insert(v_.at("block_order") == kRowsOutside ? blocks_.begin() : blocks_.end(), SubLoop(m_, 0));
      tiles_.insert(v_.at("tile_order") ? tiles_.end() : tiles_.begin(), SubLoop(m_, 1));
    }
    std::vector<std::string> order = outer_;
    Append(blocks_, &order);
    order.push_back(k_outer_);
    Append(tiles_, &order);
    for (size_t i = 0; i + 1 < plan_.k_order.size(); ++i) order.push_back(plan_.ReduceLoop(plan_.k_order[i]));
    Append({k_inner_, k_unrolled_, lines_, has_rows() ? SubLoop(m_, 2) : "", n_lane_, k_group_}, &order);
    std::erase(order, "");
    b_->Reorder(order);
  }

  // A prefix of the nest.
  void BindParallel() {
    if (v_.at("par") == kNone) return;
    if (!bands_.empty()) return b_->BindAll(bands_, "parallel");
    std::vector<std::string> parallel = outer_;
    parallel.insert(parallel.end(), blocks_.begin(),
                    v_.at("par") == kBothBlocks ? blocks_.end() : blocks_.begin() + 1);
    b_->BindAll(parallel, "parallel");
  }

  void EmitPrologue() {
    std::string loop;  // that a copy is made at
    if (!bands_.empty()) {
      loop = bands_.back();
    } else if (v_.at("pad") == kAtBlock) {
      loop = v_.at("par") == kBothBlocks ? blocks_.back() : blocks_.front();
    }
    const std::optional<PixelLayout> pixels = plan_.LayoutOfPixels(v_.at("ku"));
    const int last = plan_.way().scalar.buffer->rank() - 1;
    if (pixels && pixels->slot > pixels->step && pixels->step < plan_.way().scalar.buffer->shape[last])
      b_->PadGroups(plan_.anatomy.name(plan_.prologue.front()), last, pixels->step, pixels->slot);
    for (const int stage : plan_.prologue) {
      if (!loop.empty()) b_->ComputeAt(plan_.anatomy.name(stage), loop);
      EmitPlainStage(plan_.anatomy, stage, plan_.target, loop.empty() && v_.at("par") != kNone, b_);
    }
    if (!pixels) return;
    std::vector<std::string> layout;
    for (int dim = 0; dim < last; ++dim) layout.push_back(absl::StrCat(dim));
    layout.insert(layout.end(),
                  {absl::StrCat(last, "/", pixels->pitch), absl::StrCat(last, "%", pixels->pitch)});
    b_->Pack(plan_.anatomy.name(plan_.prologue.front()), layout);
  }

  // Local copies are made inside all parallel loops and all blocks.
  void EmitOperands() {
    const std::string& loop = k_outer_.empty() ? blocks_.back() : k_outer_;
    const Contraction& way = plan_.way();
    const int lane_dim = plan_.LaneDim();
    if (way.vector.is_const ? lane_dim >= 0 : v_.at("pack_b") != 0) {
      // No panel holds the end of one group and the start of the next.
      const bool fits = !way.groups || plan_.N() % nr_ == 0;
      EmitPanels(plan_, {way.vector, lane_dim, fits ? nr_ : kWholePanel, plan_.KGroup()}, loop, b_);
    }
    if (has_rows() && v_.at("pack_a")) {
      const int row_dim = way.scalar.PlainDim(plan_.stage().axes[way.rows.back()]);
      EmitPanels(plan_, {way.scalar, row_dim, mr_, plan_.PanelDepth(v_.at("ku"))}, loop, b_);
    }
  }

  void EmitTile() {
    b_->CacheWrite(plan_.t, tiles_.back());
    if (!k_unrolled_.empty()) b_->Bind(k_unrolled_, "unroll");
    const size_t unrolled = is_window_ ? UnrolledOf(plan_.k_order, plan_.stage()) : 0;
    for (size_t i = 1; i <= unrolled; ++i)
      b_->Bind(plan_.ReduceLoop(plan_.k_order[plan_.k_order.size() - 1 - i]), "unroll");
    b_->Tensorize(k_inner_, plan_.product.instruction.name);
    if (v_.at("ahead_a") != 0 || v_.at("ahead_b") != 0 || v_.at("ahead_c") != 0)
      b_->Prefetch(k_inner_, v_.at("ahead_a"), v_.at("ahead_b"), v_.at("ahead_c") != 0);
    EmitEpilogue(plan_.anatomy, plan_.epilogue, b_);
    EmitTileCopy(absl::StrCat(plan_.t, ".i"));
    EmitTileCopy(absl::StrCat(plan_.t, ".w"));
    if (!plan_.epilogue.empty() && !k_outer_.empty()) EmitTileCopy(plan_.anatomy.name(plan_.epilogue.back()));
  }

  // A block over the tile's sums: rows unrolled, columns in vectors.
  void EmitTileCopy(const std::string& block) {
    const auto loop = [&](const std::string& of_tile) { return block + of_tile.substr(plan_.t.size()); };
    b_->Vectorize(loop(n_lane_), nr_, plan_.lanes);
    if (!lines_.empty()) b_->Bind(loop(lines_), "unroll");
    if (has_rows()) b_->Bind(loop(SubLoop(m_, 2)), "unroll");
  }

  ContractionPlan plan_;
  const Values& v_;
  TraceBuilder* b_;
  const bool is_window_, columns_outermost_;
  const int64_t in_band_;  // tiles of lines or blocks of columns; 0: no bands
  const int64_t mr_, nr_;
  std::string m_, lines_, n_lane_, k_outer_, k_inner_, k_unrolled_, k_group_;
  std::vector<std::string> outer_rows_, outer_, bands_, blocks_, tiles_;
};

}  // namespace

DepthSteps StepsOf(const ContractionPlan& plan, const Values& v) {
  return {v.at("kc"), v.at("ku") * plan.KGroup()};
}

void EmitContraction(const ContractionPlan& plan, const Values& v, TraceBuilder* b) {
  const int64_t split = v.at("split");
  if (split == 1) return Nest(plan, v, b).Emit();
  Nest(EmitSplit(plan, split, StepsOf(plan, v), b), v, b).Emit();
  EmitSumOfParts(plan, split, b);
}

}  // namespace mycc
