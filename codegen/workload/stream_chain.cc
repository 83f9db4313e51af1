#include "codegen/workload/stream_chain.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/expr/print.h"
#include "codegen/expr/product.h"

namespace mycc {
namespace {

// The loads of a sum of products, without casts.
struct Factors {
  Expr left, right;
};
std::optional<Factors> FactorsOf(const Stage& stage) {
  if (!SumsProducts(stage)) return std::nullopt;
  const auto load = [](const Expr& factor) { return factor->op == Op::kCast ? factor->args[0] : factor; };
  const Factors factors{load(stage.value->args[0]), load(stage.value->args[1])};
  if (factors.left->op != Op::kLoad || factors.right->op != Op::kLoad) return std::nullopt;
  return factors;
}

class ChainFinder {
 public:
  ChainFinder(const Workload& workload, const StageLinks& links, int sum)
      : workload_(workload), links_(links) {
    chain_.sum = sum;
  }

  std::optional<StreamChain> Find() {
    if (!TakeSum() || !FindScores()) return std::nullopt;
    dependents_ = links_.WithReaders({chain_.scores});
    members_ = {chain_.sum};
    if (!TakeTile(links_.ProducerOf(chain_.weights->buffer.get()))) return std::nullopt;
    TakeEpilogue();
    TakeOtherReductions();
    if (!members_.contains(chain_.scores) || !HasReduction() || !IsClosed()) return std::nullopt;
    for (std::vector<int>* stages : {&chain_.tiles, &chain_.reductions, &chain_.rows})
      std::ranges::sort(*stages);
    return chain_;
  }

  // After Find found none.
  std::string WhyNot() const { return why_; }

 private:
  const Stage& stage(int s) const { return workload_.stages[s]; }
  const std::string& name(int s) const { return stage(s).output->name; }
  // The first reason stays.
  template <typename... Parts>
  bool Refuse(const Parts&... why) {
    if (why_.empty()) why_ = absl::StrCat(why...);
    return false;
  }
  bool HasReduction() {
    return !chain_.reductions.empty() || Refuse("no maximum or sum along the keys lies between ",
                                                name(chain_.scores), " and ", name(chain_.sum));
  }
  bool Depends(int s) const { return dependents_.contains(s); }

  // A product over one axis, one of whose factors other stages compute.
  bool TakeSum() {
    const Stage& sum = stage(chain_.sum);
    const std::optional<Factors> factors = FactorsOf(sum);
    if (!factors || sum.reduce_axes.size() != 1) return false;
    const Var& axis = sum.reduce_axes[0];
    const auto is_computed = [&](const Expr& load) { return links_.ProducerOf(load->buffer.get()) >= 0; };
    const bool is_left = is_computed(factors->left) && PlainDim(factors->left, axis) >= 0;
    chain_.weights = is_left ? factors->left : factors->right;
    chain_.values = is_left ? factors->right : factors->left;
    if (!is_computed(chain_.weights)) return false;
    tile_shape_ = chain_.weights->buffer->shape;
    chain_.stream_dim = PlainDim(chain_.weights, axis);
    if (chain_.stream_dim < 0) return false;
    if (!TakeAxes(sum)) {
      return Refuse(name(chain_.sum), " reads ", PrintExpr(chain_.weights),
                    "; expected each of its axes, and nothing else, as one index");
    }
    if (chain_.row_axes.empty()) {
      return Refuse("each row of ", chain_.values->buffer->name,
                    " is multiplied by one weight: no two queries share keys and values");
    }
    return chain_.value_axes.size() == 1 ||
           Refuse("elements of ", chain_.values->buffer->name, " have ", chain_.value_axes.size(),
                  " axes beside the keys' and the weights' own; expected one");
  }

  // Each dimension of the weights is an axis of the sum, or the streamed one.
  bool TakeAxes(const Stage& sum) {
    std::vector<bool> named(tile_shape_.size(), false);
    named[chain_.stream_dim] = true;
    for (size_t a = 0; a < sum.axes.size(); ++a) {
      const bool of_weights = UsesVar(chain_.weights, sum.axes[a].get()),
                 of_values = UsesVar(chain_.values, sum.axes[a].get());
      const int dim = of_weights ? PlainDim(chain_.weights, sum.axes[a]) : -1;
      chain_.dim_of_axis.push_back(dim);
      if (of_weights && (dim < 0 || named[dim])) return false;
      if (of_weights) named[dim] = true;
      std::vector<int>& axes = !of_weights  ? chain_.value_axes
                               : !of_values ? chain_.row_axes
                                            : chain_.batch_axes;
      axes.push_back(static_cast<int>(a));
    }
    LongestRowLast(sum);
    return std::ranges::all_of(named, [](bool is_named) { return is_named; });
  }

  void LongestRowLast(const Stage& sum) {
    std::vector<int>& rows = chain_.row_axes;
    size_t longest = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (sum.axes[rows[r]]->extent >= sum.axes[rows[longest]]->extent) longest = r;
    }
    if (!rows.empty()) std::rotate(rows.begin() + longest, rows.begin() + longest + 1, rows.end());
  }

  bool IsTileShaped(int s) const { return stage(s).output->shape == tile_shape_; }
  // The sum and its epilogue may have a tile's shape, too.
  bool IsTakenTile(int s) const {
    return members_.contains(s) && (s == chain_.scores || std::ranges::count(chain_.tiles, s) > 0);
  }
  // Without the streamed dimension.
  bool IsRowShaped(int s) const {
    std::vector<int64_t> rows = tile_shape_;
    rows.erase(rows.begin() + chain_.stream_dim);
    return stage(s).output->shape == rows;
  }

  // The last contraction of a tile's shape that the weights are computed from, element by element.
  bool FindScores() {
    std::set<int> seen;
    int other_sum = -1;  // of the tile's shape, but of other terms
    std::vector<int> open = {links_.ProducerOf(chain_.weights->buffer.get())};
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      if (!IsTileShaped(s) || !seen.insert(s).second) continue;
      if (stage(s).reduce == ReduceOp::kNone) {
        open.insert(open.end(), links_.ProducersOf(s).begin(), links_.ProducersOf(s).end());
      } else if ((s < chain_.scores || !TakeScores(s)) && stage(s).reduce == ReduceOp::kSum) {
        other_sum = s;
      }
    }
    if (chain_.scores < 0 && other_sum >= 0) {
      return Refuse(name(other_sum), " adds up ", PrintExpr(stage(other_sum).value),
                    "; expected a tensor with the rows times one with the keys (a scale multiplies "
                    "the sum, not its terms)");
    }
    return chain_.scores >= 0 || Refuse(chain_.weights->buffer->name,
                                        " is computed from no product of its own shape, of "
                                        "a tensor with the rows and one with the keys");
  }

  // Every load of a tensor that depends on the scores is at the same rows, and of a tile at the same place of
  // the axis.
  bool TakeProducers(int s, const std::vector<Var>& tile_index) {
    std::vector<Var> row_index = tile_index;
    if (row_index.size() == tile_shape_.size()) row_index.erase(row_index.begin() + chain_.stream_dim);
    for (const ExprNode* load : LoadsOf(stage(s).value)) {
      const int producer = links_.ProducerOf(load->buffer.get());
      if (producer < 0 || !Depends(producer)) continue;
      if (IsTileShaped(producer) && IsAt(*load, tile_index)) {
        if (!TakeTile(producer)) return false;
      } else if (IsRowShaped(producer) && IsAt(*load, row_index)) {
        if (!TakeRow(producer)) return false;
      } else {
        return Refuse(name(s), " reads ", name(producer),
                      ", which depends on the scores, at another place than its own row");
      }
    }
    return true;
  }

  bool TakeTile(int s) {
    if (!IsTileShaped(s)) return false;
    if (!members_.insert(s).second) return IsTakenTile(s);
    if (s == chain_.scores) return true;
    if (stage(s).reduce != ReduceOp::kNone)
      return Refuse(name(s), " is a second product or reduction of all pairs");
    chain_.tiles.push_back(s);
    return TakeProducers(s, stage(s).axes);
  }

  // Takes a contraction of queries, which have the rows, with keys, which lie along the streamed axis.
  bool TakeScores(int s) {
    const std::optional<Factors> factors = FactorsOf(stage(s));
    if (!factors) return false;
    const auto uses = [&](const Expr& load, int dim) { return UsesVar(load, stage(s).axes[dim].get()); };
    const bool is_left = uses(factors->left, chain_.stream_dim);
    const Expr &keys = is_left ? factors->left : factors->right,
               &queries = is_left ? factors->right : factors->left;
    if (!uses(keys, chain_.stream_dim) || uses(queries, chain_.stream_dim)) return false;
    if (std::ranges::any_of(chain_.row_axes,
                            [&](int axis) { return uses(keys, chain_.dim_of_axis[axis]); })) {
      return false;
    }
    chain_.scores = s;
    chain_.keys = keys;
    chain_.queries = queries;
    return true;
  }

  bool TakeRow(int s) {
    if (members_.contains(s)) return true;
    members_.insert(s);
    const Stage& row = stage(s);
    if (row.reduce == ReduceOp::kNone) {
      chain_.rows.push_back(s);
      return TakeProducers(s, row.axes);
    }
    const bool is_known = row.reduce == ReduceOp::kSum || row.reduce == ReduceOp::kMax ||
                          row.reduce == ReduceOp::kMin || row.reduce == ReduceOp::kProd;
    if (!is_known || row.reduce_axes.size() != 1 ||
        row.reduce_axes[0]->extent != tile_shape_[chain_.stream_dim]) {
      return Refuse(name(s), " is no sum, product, maximum or minimum over all keys and nothing else");
    }
    chain_.reductions.push_back(s);
    std::vector<Var> tile = row.axes;
    tile.insert(tile.begin() + chain_.stream_dim, row.reduce_axes[0]);
    return TakeProducers(s, tile);
  }

  // Elementwise stages that read the sum, and results of rows, at their own axes.
  void TakeEpilogue() {
    for (int last = chain_.sum;;) {
      if (links_.IsOutput(last) || links_.ReadersOf(last).size() != 1) return;
      const int next = links_.ReadersOf(last)[0];
      if (stage(next).reduce != ReduceOp::kNone || !ReadsAtOwnAxes(stage(next), stage(last).output)) return;
      if (!TakeRowsOf(next, last)) return;
      members_.insert(next);
      chain_.epilogue.push_back(next);
      last = next;
    }
  }

  // The results of rows that a stage of the epilogue reads. False when it reads what depends on the scores in
  // another way; nothing is taken then.
  bool TakeRowsOf(int next, int last) {
    std::vector<Var> rows(tile_shape_.size());
    for (size_t a = 0; a < chain_.dim_of_axis.size(); ++a) {
      if (chain_.dim_of_axis[a] >= 0) rows[chain_.dim_of_axis[a]] = stage(next).axes[a];
    }
    rows.erase(rows.begin() + chain_.stream_dim);
    return TakeAll([&] {
      const std::vector<const ExprNode*> loads = LoadsOf(stage(next).value);
      return std::ranges::all_of(loads, [&](const ExprNode* load) {
        const int producer = links_.ProducerOf(load->buffer.get());
        if (producer < 0 || producer == last || !Depends(producer)) return true;
        return IsRowShaped(producer) && IsAt(*load, rows) && TakeRow(producer);
      });
    });
  }

  // Everything that `take` takes; nothing when it returns false.
  template <typename TakeFn>
  bool TakeAll(const TakeFn& take) {
    const StreamChain before = chain_;
    const std::set<int> members_before = members_;
    const std::string why_before = why_;
    if (take()) return true;
    chain_ = before;
    members_ = members_before;
    why_ = why_before;
    return false;
  }

  // Reductions of tiles that only stages outside read, such as the sums of exponentials of parts.
  void TakeOtherReductions() {
    for (const int tile : std::set<int>(members_)) {
      if (!IsTakenTile(tile)) continue;
      for (const int reader : links_.ReadersOf(tile)) {
        const bool reduces =
            !members_.contains(reader) && IsRowShaped(reader) && stage(reader).reduce != ReduceOp::kNone;
        if (reduces) TakeAll([&] { return TakeRow(reader); });
      }
    }
  }

  // Nobody outside reads a tile. Results of rows may have other readers.
  bool IsClosed() {
    std::vector<int> inside = chain_.tiles;
    inside.push_back(chain_.scores);
    inside.insert(inside.end(), chain_.rows.begin(), chain_.rows.end());
    return std::ranges::all_of(inside, [&](int s) { return IsInside(s); });
  }

  bool IsInside(int s) {
    if (links_.IsOutput(s)) return Refuse(name(s), " is an output, and has to be stored");
    for (const int reader : links_.ReadersOf(s)) {
      if (!members_.contains(reader))
        return Refuse(name(reader), ", which is not part of the pass, reads ", name(s));
    }
    return true;
  }

  const Workload& workload_;
  const StageLinks& links_;
  StreamChain chain_;
  std::vector<int64_t> tile_shape_;
  std::set<int> members_;
  std::set<int> dependents_;  // stages whose values depend on the scores, and the scores
  std::string why_;
};

// Whether a product is among the stages that a factor of the sum is computed from.
bool MultipliesByProduct(const Workload& workload, const StageLinks& links, int sum) {
  const std::set<int> stages = links.WithProducers({sum});
  return std::ranges::any_of(stages, [&](int s) { return s != sum && SumsProducts(workload.stages[s]); });
}

}  // namespace

std::vector<int> StreamChain::Members() const {
  std::vector<int> members = {sum, scores};
  for (const std::vector<int>* stages : {&tiles, &reductions, &rows, &epilogue})
    members.insert(members.end(), stages->begin(), stages->end());
  std::ranges::sort(members);
  return members;
}

std::optional<StreamChain> FindStreamChain(const Workload& workload, const StageLinks& links, int sum) {
  return ChainFinder(workload, links, sum).Find();
}

std::string WhyNoStreamChain(const Workload& workload, const StageLinks& links, int sum) {
  if (!MultipliesByProduct(workload, links, sum)) return "";
  ChainFinder finder(workload, links, sum);
  return finder.Find() ? "" : finder.WhyNot();
}

}  // namespace mycc
