#include "codegen/schedule/part_axes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"

namespace mycc {
namespace {

// n in axis//n, the only use of the axis in the load; 0 when it is used in another way.
int64_t DivisorOf(const Expr& load, const Var& axis) {
  int64_t divisor = 0;
  for (const Expr& index : load->args) {
    if (!UsesVar(index, axis.get())) continue;
    const bool divides = index->op == Op::kFloorDiv && index->args[0]->op == Op::kVar &&
                         index->args[0]->var == axis && IsConstInt(index->args[1]);
    if (!divides || divisor != 0) return 0;
    IsConstInt(index->args[1], &divisor);
  }
  return divisor;
}

Expr AddAxis(std::vector<Var>* axes, const char* letter, int64_t extent) {
  axes->push_back(MakeVar(absl::StrCat(letter, axes->size()), extent));
  return VarRef(axes->back());
}

}  // namespace

SharedHeads FindSharedHeads(const Workload& workload, const StreamChain& chain) {
  const Stage &sum = workload.stages[chain.sum], &scores = workload.stages[chain.scores];
  for (const int axis : chain.batch_axes) {
    const int64_t of_values = DivisorOf(chain.values, sum.axes[axis]),
                  of_keys = DivisorOf(chain.keys, scores.axes[chain.dim_of_axis[axis]]);
    if (of_values > 1 && of_values == of_keys && sum.axes[axis]->extent % of_values == 0)
      return {axis, of_values};
  }
  return {};
}

ChainPartition::ChainPartition(const Workload& workload, const StreamChain& chain, const ChainParts& parts)
    : workload_(workload),
      chain_(chain),
      length_(parts.length),
      keys_(workload.stages[chain.sum].reduce_axes[0]->extent),
      count_((keys_ + length_ - 1) / length_),
      row_dim_(chain.dim_of_axis[chain.row_axes.back()]),
      queries_(workload.stages[chain.scores].axes[row_dim_]->extent),
      heads_(parts.heads),
      rows_(parts.rows) {
  if (heads_ > 1) head_dim_ = chain.dim_of_axis[FindSharedHeads(workload, chain).axis];
}

bool ChainPartition::IsOfTiles(int s) const {
  return s == chain_.scores || std::ranges::find(chain_.tiles, s) != chain_.tiles.end();
}

// The dimension of a tile for each of a member's axes; -1 for those of the values.
std::vector<int> ChainPartition::DimsOf(int s) const {
  if (s == chain_.sum) return chain_.dim_of_axis;
  std::vector<int> dims;
  for (int d = 0; d < static_cast<int>(chain_.weights->buffer->shape.size()); ++d) {
    if (d != chain_.stream_dim || IsOfTiles(s)) dims.push_back(d);
  }
  return dims;
}

PartAxes ChainPartition::AxesOf(int s) const {
  PartAxes made;
  AddRowsAndHeads(s, &made);
  AddKeys(s, &made);
  if (s == chain_.scores) {
    for (const Var& depth : stage(s).reduce_axes)
      made.of_whole[depth.get()] = AddAxis(&made.reduce_axes, "r", depth->extent);
  }
  return made;
}

// The axes of the whole but for the streamed one, with the number of the part before the row.
void ChainPartition::AddRowsAndHeads(int s, PartAxes* made) const {
  const Stage& whole = stage(s);
  const std::vector<int> dims = DimsOf(s);
  Var query;
  for (size_t a = 0; a < whole.axes.size(); ++a) {
    const Var& axis = whole.axes[a];
    if (dims[a] == chain_.stream_dim) continue;
    if (dims[a] == row_dim_) {
      query = axis;
      made->part = AddAxis(&made->axes, "a", count_);
      made->row = AddAxis(&made->axes, "a", s == chain_.sum ? Rows() : rows_);
      continue;
    }
    const bool is_head = dims[a] >= 0 && dims[a] == head_dim_;
    if (is_head) made->head = axis;
    const Expr own = AddAxis(&made->axes, "a", is_head ? axis->extent / heads_ : axis->extent);
    made->dims[dims[a]] = made->of_whole[axis.get()] = own;
  }
  // Rows of the padding read what the last row reads; the queries have a condition of their own.
  const Expr row = HasPadding(s) ? MakeBinary(Op::kMin, made->row, IntConst(Rows() - 1)) : made->row;
  made->of_whole[query.get()] = heads_ > 1 ? Mod(made->row, queries_) : s == chain_.scores ? made->row : row;
  if (made->head == nullptr) return;
  made->of_whole[made->head.get()] = made->dims.at(head_dim_) * heads_ + FloorDiv(row, queries_);
}

void ChainPartition::AddKeys(int s, PartAxes* made) const {
  const bool is_tile = IsOfTiles(s);
  made->key = is_tile ? AddAxis(&made->axes, "a", length_) : AddAxis(&made->reduce_axes, "r", length_);
  const Var& streamed = is_tile ? stage(s).axes[chain_.stream_dim] : stage(s).reduce_axes[0];
  const Expr begin = made->part * length_, last = IntConst(keys_ - length_);
  const Expr key = (IsEven() ? begin : MakeBinary(Op::kMin, begin, last)) + made->key;
  made->of_whole[streamed.get()] = key;
  if (!IsEven()) made->is_own = MakeBinary(Op::kLe, begin, key);
}

Expr ChainPartition::OverPart(const Expr& value, const PartAxes& at) const {
  const Expr grouped = Rewrite(value, [&](const Expr& e) -> Expr {
    const bool is_group = at.head != nullptr && e->op == Op::kFloorDiv && IsConstInt(e->args[1], heads_) &&
                          e->args[0]->op == Op::kVar && e->args[0]->var == at.head;
    return is_group ? at.dims.at(head_dim_) : nullptr;
  });
  return Simplify(Substitute(grouped, at.of_whole));
}

std::vector<Expr> ChainPartition::RowInPart(const PartAxes& at) const {
  std::vector<Expr> index;
  for (int d = 0; d < static_cast<int>(chain_.weights->buffer->shape.size()); ++d) {
    if (d == row_dim_) index.insert(index.end(), {at.part, at.row});
    if (d != row_dim_ && d != chain_.stream_dim) index.push_back(at.dims.at(d));
  }
  return index;
}

Expr ChainPartition::OfWhole(const Buffer& part, int s, const std::vector<Var>& axes,
                             const Expr& number) const {
  const std::vector<int> dims = DimsOf(s);
  const auto axis_of = [&](int dim) { return VarRef(axes[std::ranges::find(dims, dim) - dims.begin()]); };
  std::vector<Expr> index;
  for (size_t a = 0; a < dims.size(); ++a) {
    const Expr own = VarRef(axes[a]);
    if (dims[a] == row_dim_) {
      index.push_back(number);
      index.push_back(heads_ == 1 ? own : Mod(axis_of(head_dim_), heads_) * queries_ + own);
    } else {
      index.push_back(dims[a] >= 0 && dims[a] == head_dim_ ? FloorDiv(own, heads_) : own);
    }
  }
  return Load(part, std::move(index));
}

std::vector<Expr> ChainPartition::RowInWhole(int s, const std::vector<Var>& axes) const {
  const std::vector<int> dims = DimsOf(s);
  std::vector<Expr> row;
  for (int d = 0; d < static_cast<int>(chain_.weights->buffer->shape.size()); ++d) {
    if (d != chain_.stream_dim) row.push_back(VarRef(axes[std::ranges::find(dims, d) - dims.begin()]));
  }
  return row;
}

}  // namespace mycc
