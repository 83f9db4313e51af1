#include "codegen/passes/fragment_layouts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Appends the nests under `stmt` to `nests`; false where there is other code.
bool CollectNests(const Stmt& stmt, FragmentNest around, std::vector<FragmentNest>* nests) {
  if (const Store* store = DynAs<Store>(stmt)) {
    around.store = store;
    nests->push_back(std::move(around));
    return true;
  }
  if (const For* loop = DynAs<For>(stmt)) {
    if (loop->loop_kind != LoopKind::kSerial || !ConstExtent(*loop)) return false;
    around.loops.push_back(loop);
  } else if (const If* branch = DynAs<If>(stmt)) {
    if (branch->otherwise) return false;
    SplitConjunction(branch->condition, &around.conditions);
  } else if (stmt->kind != StmtKind::kSeq) {
    return false;
  }
  const std::vector<Stmt> children = Children(stmt);
  return std::ranges::all_of(children, [&](const Stmt& child) { return CollectNests(child, around, nests); });
}

// The indices of each of the nest's accesses to the buffer.
std::vector<std::vector<Expr>> AccessesOf(const FragmentNest& nest, const Buffer& buffer) {
  std::vector<std::vector<Expr>> accesses;
  nest.ForEachAccess([&](const Buffer& accessed, const std::vector<Expr>& indices) {
    if (accessed == buffer) accesses.push_back(indices);
  });
  return accesses;
}

absl::Status CheckPair(const FragmentNest& writer, const FragmentNest& other) {
  const Buffer& buffer = writer.store->buffer;
  const auto written = AccessesOf(writer, buffer), touched = AccessesOf(other, buffer);
  if (touched.empty()) return absl::OkStatus();
  for (size_t i = 0; i < std::min(writer.loops.size(), other.loops.size()); ++i) {
    if (writer.loops[i] != other.loops[i]) break;
    const Var& var = writer.loops[i]->var;
    const auto has_var = [&](const auto& indices) {
      return std::ranges::find(indices, var, &ExprNode::var) != indices.end();
    };
    if (std::ranges::all_of(written, has_var) && std::ranges::all_of(touched, has_var)) continue;
    return Refusal("statements in loop ", var->name, " share elements of ", buffer->name,
                   " between its iterations, so that threads cannot execute one after the other");
  }
  return absl::OkStatus();
}

// The loops over the buffer's rows, its first `row_dims` dimensions, and over its columns, without those of a
// single element; nullopt unless each dimension has a loop over all of it.
std::optional<NestFrame> LoopsAlong(const FragmentNest& nest, const FragmentLayout& layout, size_t row_dims,
                                    const Buffer& buffer, const std::vector<Expr>& indices) {
  NestFrame frame{layout, {}, {}, {}};
  for (size_t d = 0; d < indices.size(); ++d) {
    if (buffer->shape[d] == 1 && IsConstInt(indices[d], int64_t{0})) continue;
    const auto loop = std::ranges::find(nest.loops, indices[d]->var, &For::var);
    if (loop == nest.loops.end() || ConstExtent(**loop) != buffer->shape[d]) return std::nullopt;
    (d < row_dims ? frame.rows : frame.columns).push_back(*loop);
  }
  return frame;
}

// The number of leading dimensions that hold `rows` rows.
size_t RowDims(const Buffer& buffer, int64_t rows) {
  size_t dims = 0;
  for (int64_t seen = 1; dims < buffer->shape.size() && seen < rows; ++dims) seen *= buffer->shape[dims];
  return dims;
}

// Adds what one access says to the frame. False when its loops are not those of the accesses before.
bool Agrees(const NestFrame& access, NestFrame* frame) {
  if (access.rows != frame->rows || !access.layout.SameRows(frame->layout)) return false;
  if (access.layout.columns == 0) return true;
  if (frame->layout.columns == 0) *frame = access;
  return access.columns == frame->columns && access.layout == frame->layout;
}

// The loops that are neither rows nor columns. In a nest without columns they are the columns, if they divide
// among the lanes.
void AddRest(const FragmentNest& nest, NestFrame* frame) {
  int64_t extent = 1;
  for (const For* loop : nest.loops) {
    if (std::ranges::count(frame->rows, loop) + std::ranges::count(frame->columns, loop) > 0) continue;
    frame->rest.push_back(loop);
    extent *= *ConstExtent(*loop);
  }
  const bool divides =
      !frame->rest.empty() && extent % (frame->layout.unit.columns * frame->layout.warps.columns) == 0;
  if (frame->layout.columns > 0 || !divides) return;
  frame->layout = frame->layout.WithColumns(extent);
  frame->columns = std::exchange(frame->rest, {});
}

}  // namespace

void FragmentNest::ForEachAccess(
    const std::function<void(const Buffer& buffer, const std::vector<Expr>& indices)>& visit) const {
  const auto loads = [&](const Expr& expr) {
    ForEachLoad(expr, [&](const ExprNode& load) { visit(load.buffer, load.args); });
  };
  visit(store->buffer, store->indices);
  for (const Expr& index : store->indices) loads(index);
  loads(store->value);
  for (const Expr& condition : conditions) loads(condition);
}

std::vector<FragmentNest> NestsOf(const Stmt& root) {
  std::vector<FragmentNest> nests;
  if (!CollectNests(root, FragmentNest{}, &nests)) return {};
  return nests;
}

absl::Status CheckSeparable(const std::vector<FragmentNest>& nests) {
  absl::Status status;
  for (const FragmentNest& writer : nests) {
    for (const FragmentNest& other : nests) {
      if (&writer != &other) status.Update(CheckPair(writer, other));
    }
  }
  return status;
}

absl::Status RefuseFragment(const Buffer& buffer, const std::string& why) {
  return Refusal(buffer->scope == Scope::kAccumulator ? "the accumulator " : "the tile in registers ",
                 buffer->name, ": ", why);
}

absl::StatusOr<FragmentLayouts> FragmentLayouts::Of(const Stmt& body, const Target& target) {
  FragmentLayouts layouts;
  // Threads have buffers of their own inside thread loops.
  VisitStmts(body, [&](const Stmt& stmt) {
    const Alloc* alloc = DynAs<Alloc>(stmt);
    if (alloc != nullptr && IsInRegisters(*alloc->buffer)) layouts.in_registers_.insert(alloc->buffer.get());
    return !IsThreadLoop(stmt);
  });
  MYCC_RETURN_IF_ERROR(layouts.AddProducts(body, target));
  if (layouts.empty()) return layouts;
  const std::vector<FragmentNest> nests = layouts.CollectRoots(body);
  for (bool more = true; more;) {
    more = false;
    for (const FragmentNest& nest : nests) MYCC_RETURN_IF_ERROR(layouts.Spread(nest, &more));
  }
  return layouts;
}

const LaidBuffer* FragmentLayouts::Find(const Buffer& buffer) const {
  const auto found = laid_.find(buffer.get());
  return found == laid_.end() ? nullptr : &found->second;
}

absl::Status FragmentLayouts::AddProducts(const Stmt& body, const Target& target) {
  absl::Status status;
  VisitStmts(body, [&](const Stmt& stmt) {
    const Mma* mma = DynAs<Mma>(stmt);
    if (mma == nullptr || mma->acc.buffer->scope == Scope::kLocal) return status.ok();
    if (!IsInRegisters(*mma->acc.buffer)) {
      status.Update(
          Refusal("the accumulator ", mma->acc.buffer->name, ": a product has its sums in registers"));
      return false;
    }
    const absl::StatusOr<FragmentLayout> layout = FragmentLayoutOf(*mma, target);
    status.Update(layout.status());
    if (!layout.ok()) return false;
    operands_.insert({mma->a.buffer.get(), mma->b.buffer.get()});
    status.Update(Lay(mma->acc.buffer, RowDims(mma->acc.buffer, mma->m), *layout));
    if (IsInRegisters(*mma->a.buffer)) status.Update(AddOperand(*mma, layout->WithColumns(mma->k)));
    if (IsInRegisters(*mma->b.buffer))
      status.Update(RefuseFragment(mma->b.buffer, "the right operand of a product is in shared memory"));
    return status.ok();
  });
  return status;
}

// A product takes its left operand from the registers of an accumulator as deep as the product.
absl::Status FragmentLayouts::AddOperand(const Mma& mma, const FragmentLayout& layout) {
  const TileView& a = mma.a;
  if (layout.warps.columns != 1) {
    return RefuseFragment(a.buffer, absl::StrCat("the ", layout.warps.columns,
                                                 " warps along the columns of the product would need each ",
                                                 "other's parts of its operand; expected 1"));
  }
  const bool whole =
      std::ranges::all_of(a.indices, [](const Expr& index) { return IsConstInt(index, int64_t{0}); });
  if (!whole || a.col_stride != 1 || a.row_stride != layout.columns || DTypeBytes(a.buffer->dtype) != 2 ||
      layout.OperandRegisters(mma.row()->a.fragment, 0, 0).empty()) {
    return RefuseFragment(
        a.buffer, absl::StrCat("as a product's left operand, expected a whole tile of ", layout.rows, "x",
                               layout.columns, " elements of 16 bits, row by row"));
  }
  return Lay(a.buffer, RowDims(a.buffer, layout.rows), layout);
}

absl::Status FragmentLayouts::Lay(const Buffer& buffer, size_t row_dims, const FragmentLayout& layout) {
  const auto found = laid_.find(buffer.get());
  if (found != laid_.end()) {
    if (found->second.layout == layout && found->second.row_dims == row_dims) return absl::OkStatus();
    return RefuseFragment(buffer, absl::StrCat("one use divides it as ", DescribeLayout(found->second.layout),
                                               ", another as ", DescribeLayout(layout)));
  }
  const int64_t columns = std::max<int64_t>(layout.columns, 1);
  int64_t rows = 1;
  for (size_t d = 0; d < row_dims; ++d) rows *= buffer->shape[d];
  if (rows != layout.rows || buffer->num_elements() != rows * columns) {
    return RefuseFragment(buffer,
                          absl::StrCat("its elements are not those of a tile of ", DescribeLayout(layout)));
  }
  std::vector<int64_t> shape = {layout.rows};
  if (layout.columns > 0) shape.push_back(layout.columns);
  laid_[buffer.get()] = {layout, row_dims, MakeBuffer(buffer->name, buffer->dtype, shape, buffer->scope)};
  return absl::OkStatus();
}

// Nests begin at the outermost loop that indexes a buffer in registers.
std::vector<FragmentNest> FragmentLayouts::CollectRoots(const Stmt& body) {
  std::vector<FragmentNest> nests;
  VisitStmts(body, [&](const Stmt& stmt) {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr) return true;
    std::vector<FragmentNest> found = NestsOf(stmt);
    bool indexes = false;
    for (const FragmentNest& nest : found) {
      nest.ForEachAccess([&](const Buffer& buffer, const std::vector<Expr>& indices) {
        indexes |= in_registers_.contains(buffer.get()) &&
                   std::ranges::count(indices, loop->var, &ExprNode::var) > 0;
      });
    }
    if (!indexes) return true;
    roots_.insert(stmt.get());
    std::ranges::move(found, std::back_inserter(nests));
    return false;
  });
  return nests;
}

absl::StatusOr<std::optional<NestFrame>> FragmentLayouts::FrameOf(const FragmentNest& nest) const {
  std::optional<NestFrame> frame;
  Buffer first;
  absl::Status status;
  nest.ForEachAccess([&](const Buffer& buffer, const std::vector<Expr>& indices) {
    const LaidBuffer* laid = Find(buffer);
    if (laid == nullptr || !status.ok()) return;
    const auto access = LoopsAlong(nest, laid->layout, laid->row_dims, buffer, indices);
    if (!access) {
      status = RefuseFragment(buffer, kOutsideOfNest);
    } else if (!frame) {
      frame = access;
      first = buffer;
    } else if (!Agrees(*access, &*frame)) {
      status = RefuseFragment(
          buffer, absl::StrCat("a nest uses ", DescribeLayout(laid->layout), " with ",
                               DescribeLayout(frame->layout), " of ", first->name,
                               "; expected the same loops along the rows of both, in the same threads"));
    }
  });
  if (!status.ok()) return status;
  if (frame) AddRest(nest, &*frame);
  return frame;
}

absl::Status FragmentLayouts::Spread(const FragmentNest& nest, bool* more) {
  MYCC_ASSIGN_OR_RETURN(const std::optional<NestFrame> frame, FrameOf(nest));
  if (!frame) return absl::OkStatus();
  absl::Status status;
  nest.ForEachAccess([&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if (in_registers_.count(buffer.get()) == 0 || Find(buffer) != nullptr) return;
    const size_t row_dims = RowDims(buffer, frame->layout.rows);
    const auto access = LoopsAlong(nest, frame->layout, row_dims, buffer, indices);
    if (!access || access->rows != frame->rows) return;
    const bool is_vector = access->columns.empty();
    if (!is_vector && access->columns != frame->columns) return;
    status.Update(Lay(buffer, row_dims, frame->layout.WithColumns(is_vector ? 0 : frame->layout.columns)));
    *more = true;
  });
  return status;
}

}  // namespace mycc
