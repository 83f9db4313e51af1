#include "tuner/space/rules/panels.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

// The dimension along which the operand's groups lie.
int DepthDim(const ContractionPlan& plan, const Panels& panels) {
  return panels.operand.PlainDim(plan.stage().reduce_axes[plan.k_order.back()]);
}

std::vector<std::string> PanelLayout(const ContractionPlan& plan, const Panels& panels) {
  const auto& [operand, panel_dim, panel, depth] = panels;
  std::vector<std::string> layout;
  std::vector<bool> reduces(operand.index.size(), false);
  std::vector<std::string> tail;
  int depth_dim = -1;
  for (int k : plan.k_order) {
    const int dim = operand.PlainDim(plan.stage().reduce_axes[k]);
    if (dim < 0 || dim == panel_dim) continue;
    reduces[dim] = true;
    const bool grouped = depth > 1 && k == plan.k_order.back();
    if (grouped) depth_dim = dim;
    tail.push_back(grouped ? absl::StrCat(dim, "/", depth) : absl::StrCat(dim));
  }
  for (size_t d = 0; d < operand.index.size(); ++d) {
    if (static_cast<int>(d) != panel_dim && !reduces[d]) layout.push_back(absl::StrCat(d));
  }
  if (panel != kWholePanel)
    layout.push_back(panel == 1 ? absl::StrCat(panel_dim) : absl::StrCat(panel_dim, "/", panel));
  layout.insert(layout.end(), tail.begin(), tail.end());
  if (panel == kWholePanel) layout.push_back(absl::StrCat(panel_dim));
  if (panel > 1) layout.push_back(absl::StrCat(panel_dim, "%", panel));
  if (depth_dim >= 0) layout.push_back(absl::StrCat(depth_dim, "%", depth));
  return layout;
}

// Groups are interleaved in registers: of rows of the operand that a vector runs along, or, where it lies
// along the depth, of as many groups as a vector has lanes, which are turned (llvm/kernel_shuffles.cc).
void EmitInterleaving(const ContractionPlan& plan, const Panels& panels, const std::string& copy,
                      TraceBuilder* b) {
  const int last = panels.operand.buffer->rank() - 1, depth_dim = DepthDim(plan, panels);
  const auto loop = [&](int dim) { return absl::StrCat(copy, ".a", dim); };
  const std::string lanes = loop(panels.dim), depth = loop(depth_dim);
  const bool turned = depth_dim == last;
  b->Split(lanes, {plan.lanes});
  std::vector<int64_t> parts = {panels.depth};
  if (turned) parts.insert(parts.begin(), plan.lanes);
  b->Split(depth, parts);
  std::vector<std::string> order;
  for (int dim = 0; dim <= last; ++dim)
    order.push_back(dim == panels.dim || dim == depth_dim ? SubLoop(loop(dim), 0) : loop(dim));
  for (size_t part = 1; part <= parts.size(); ++part) order.push_back(SubLoop(depth, static_cast<int>(part)));
  order.push_back(SubLoop(lanes, 1));
  b->Reorder(order);
  for (size_t part = 1; part <= parts.size(); ++part)
    b->Bind(SubLoop(depth, static_cast<int>(part)), "unroll");
  b->Bind(SubLoop(lanes, 1), "vector");
}

}  // namespace

void EmitPanels(const ContractionPlan& plan, const Panels& panels, const std::string& loop, TraceBuilder* b) {
  const auto& [operand, panel_dim, panel, depth] = panels;
  const std::string copy = b->CacheRead(operand.buffer->name, plan.t, operand.is_const ? "root" : loop,
                                        operand.is_const ? "packed" : "local");
  b->Pack(copy, PanelLayout(plan, panels));
  const int last = operand.buffer->rank() - 1, depth_dim = DepthDim(plan, panels);
  const bool contiguous = panel_dim == last || depth_dim == last;
  const bool in_vectors = panel % plan.lanes == 0 && panel_dim != depth_dim;
  if (depth == plan.KGroup() && depth > 1 && contiguous && in_vectors && depth_dim >= 0)
    return EmitInterleaving(plan, panels, copy, b);
  // Whole groups at once, or vectors along the rows.
  const bool along_depth = depth > 1 && depth_dim == last;
  if (panel_dim != last && !along_depth) return;
  const std::string along = absl::StrCat(copy, ".a", last);
  b->Split(along, {along_depth ? depth : plan.lanes});
  b->Bind(SubLoop(along, 1), "vector");
}

}  // namespace mycc
