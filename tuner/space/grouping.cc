#include "tuner/space/grouping.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/expr/product.h"
#include "tuner/space/cheap_stages.h"
#include "tuner/space/stream_chain.h"

namespace mycc {
namespace {

class Grouping {
 public:
  Grouping(const Anatomy& anatomy, const Target& target, bool streams)
      : anatomy_(anatomy), target_(target), on_gpu_(target.kind == TargetKind::kCuda) {
    taken_.resize(anatomy.num_stages(), false);
    for (int s = 0; s < anatomy.num_stages(); ++s) class_.push_back(Classify(anatomy, s, target));
    for (int s = 0; streams && s < anatomy.num_stages(); ++s) {
      if (anatomy.info(s).contraction) TakeStreamed(s);
    }
    for (int s = 0; s < anatomy.num_stages(); ++s) {
      if (!taken_[s] && (class_[s] == StageClass::kContraction || class_[s] == StageClass::kTile))
        TakeTiled(s);
    }
    for (int s = 0; s < anatomy.num_stages(); ++s) {
      if (!taken_[s] && class_[s] == StageClass::kRow) TakeRows(s);
    }
    for (int s = 0; s < anatomy.num_stages(); ++s) {
      if (!taken_[s]) Take(Group{s, {s}}, StageClass::kElementwise);
    }
    std::ranges::sort(parts_, [](const auto& a, const auto& b) { return a.first.anchor < b.first.anchor; });
  }

  const Groups& groups() const { return parts_; }

 private:
  bool OnlyFeeds(int s, int reader) const {
    const StageInfo& info = anatomy_.info(s);
    return !info.is_output && info.readers.size() == 1 && info.readers[0] == reader;
  }

  // Computed without any row reduction: padding, casts and the like.
  bool IsPlain(int s) const {
    if (class_[s] != StageClass::kElementwise) return false;
    const std::vector<int>& producers = anatomy_.info(s).producers;
    return std::ranges::all_of(producers, [&](int p) { return class_[p] != StageClass::kRow; });
  }

  void TakeStreamed(int sum) {
    const std::optional<StreamChain> chain = FindStreamChain(anatomy_, sum);
    if (!chain) return;
    std::vector<int> members = chain->Members();
    if (std::ranges::any_of(members, [&](int s) { return taken_[s]; })) return;
    // Queries in the order of a tile are computed as they are copied to it.
    const int queries = anatomy_.ProducerOf(chain->queries->buffer.get());
    if (on_gpu_ && queries >= 0 && IsPlain(queries) && OnlyFeeds(queries, chain->scores))
      members.insert(members.begin(), queries);
    Take(Group{sum, members}, StageClass::kStreamed);
    if (on_gpu_) TakeMerges(*chain);
  }

  // Whether a stage reduces results of the chain along one of its batches, the parts, unlike a product with
  // its values.
  bool MergesParts(int s, const StreamChain& chain, const std::set<int>& results) const {
    const Stage& stage = anatomy_.stage(s);
    if (stage.reduce == ReduceOp::kNone || stage.reduce_axes.size() != 1) return false;
    bool merges = false;
    for (const ExprNode* load : LoadsOf(stage.value)) {
      if (!results.contains(anatomy_.ProducerOf(load->buffer.get()))) continue;
      const int dim = PlainDim(load->args, stage.reduce_axes[0]);
      if (std::ranges::count(chain.batch_axes, dim) == 0) return false;
      merges = true;
    }
    return merges;
  }

  // The merges of a chain's parts: of its sum, and of its reductions for those who read these alone, such as
  // a log-sum-exp.
  void TakeMerges(const StreamChain& chain) {
    const std::vector<int>& readers = anatomy_.info(chain.sum).readers;
    if (readers.size() != 1 || !MergesParts(readers[0], chain, {chain.sum})) return;
    TakeMerge(readers[0]);
    const std::set<int> reductions(chain.reductions.begin(), chain.reductions.end());
    for (int s = anatomy_.num_stages() - 1; s > chain.sum; --s) {
      if (!taken_[s] && MergesParts(s, chain, reductions)) TakeMerge(s);
    }
  }

  // The stage that merges, with what follows it and all that these alone are computed from.
  void TakeMerge(int anchor) {
    const std::vector<int> epilogue = EpilogueOf(anchor);
    std::set<int> members(epilogue.begin(), epilogue.end());
    members.insert(anchor);
    const auto only_feeds_members = [&](int s) {
      const StageInfo& info = anatomy_.info(s);
      return !info.is_output &&
             std::ranges::all_of(info.readers, [&](int reader) { return members.contains(reader); });
    };
    for (int s = anchor - 1; s >= 0; --s) {
      const std::vector<int>& of_stage = anatomy_.info(s).readers;
      const bool is_read =
          std::ranges::any_of(of_stage, [&](int reader) { return members.contains(reader); });
      if (is_read && !taken_[s] && only_feeds_members(s)) members.insert(s);
    }
    Take(Group{anchor, {members.begin(), members.end()}}, StageClass::kMerge);
  }

  // A GPU's ordinary cores have no tile of a stage for both factors of its product by itself.
  bool HasNoTileOfProducers(int anchor) const {
    const std::optional<Contraction>& c = anatomy_.info(anchor).contraction;
    return on_gpu_ && class_[anchor] == StageClass::kContraction && c->OfOneTensor() &&
           !HasTensorInstruction(*c, anatomy_.product(anchor), target_);
  }

  void TakeTiled(int anchor) {
    Group group{anchor, {anchor}};
    const bool with_producers = !HasNoTileOfProducers(anchor);
    for (int producer : anatomy_.info(anchor).producers) {
      if (with_producers && !taken_[producer] && IsPlain(producer) && OnlyFeeds(producer, anchor))
        group.members.push_back(producer);
    }
    const std::vector<int> epilogue = EpilogueOf(anchor);
    group.members.insert(group.members.end(), epilogue.begin(), epilogue.end());
    std::ranges::sort(group.members);
    Take(group, class_[anchor]);
  }

  // Elementwise stages after the anchor that end in one stage which alone is read, or put out, by others.
  std::vector<int> EpilogueOf(int anchor) const {
    std::vector<int> grown = {anchor};
    std::map<int, double> nodes = {{anchor, 1}};  // of what each becomes with those before it inside
    size_t closed = 1;
    for (int s = anchor + 1; s < anatomy_.num_stages(); ++s) {
      if (!CanFollow(s, grown, anchor)) continue;
      nodes[s] = NodesWith(s, nodes);
      if (nodes[s] > kMostInlinedNodes) continue;
      grown.push_back(s);
      if (IsClosed(grown)) closed = grown.size();
    }
    return {grown.begin() + 1, grown.begin() + static_cast<int64_t>(closed)};
  }

  // Reads some of `grown` at its own axes, and otherwise only stages before the anchor.
  bool CanFollow(int s, const std::vector<int>& grown, int anchor) const {
    if (taken_[s] || class_[s] != StageClass::kElementwise) return false;
    bool follows = false;
    for (int producer : anatomy_.info(s).producers) {
      if (std::ranges::count(grown, producer) > 0) {
        if (!anatomy_.ReadsElementwise(s, producer)) return false;
        follows = true;
      } else if (producer > anchor) {
        return false;
      }
    }
    return follows;
  }

  // The nodes of the stage's expression when `others`, by stage, replace its reads of these stages.
  double NodesWith(int s, const std::map<int, double>& others) const {
    double nodes = 0;
    Visit(anatomy_.stage(s).value, [&](const ExprNode& node) {
      const int producer = node.op == Op::kLoad ? anatomy_.ProducerOf(node.buffer.get()) : -1;
      const auto other = others.find(producer);
      nodes += other != others.end() ? other->second : 1;
    });
    return nodes;
  }

  // Nobody outside reads any but the last.
  bool IsClosed(const std::vector<int>& stages) const {
    return std::all_of(stages.begin(), stages.end() - 1, [&](int s) {
      const StageInfo& info = anatomy_.info(s);
      return !info.is_output && std::ranges::all_of(info.readers, [&](int reader) {
        return std::ranges::count(stages, reader) > 0;
      });
    });
  }

  // Grows from a row reduction over the stages on the same rows; falls back to the reduction alone.
  void TakeRows(int seed) {
    const std::vector<Var>& rows = anatomy_.stage(seed).axes;
    std::set<int> members = {seed};
    for (bool grown = true; grown;) {
      grown = false;
      for (int s = 0; s < anatomy_.num_stages(); ++s) {
        if (taken_[s] || members.count(s) || !SameRows(s, rows) || !Touches(s, members)) continue;
        members.insert(s);
        grown = true;
      }
    }
    const int anchor = *members.rbegin();
    bool closed = !rows.empty();
    for (int s : members) {
      if (s == anchor) continue;
      closed &= !anatomy_.info(s).is_output && !anatomy_.info(s).readers.empty();
      for (int reader : anatomy_.info(s).readers) closed &= members.count(reader) > 0;
    }
    if (!closed || !StaySmall(members)) {
      Take(Group{seed, {seed}}, StageClass::kRow);
      return;
    }
    Take(Group{anchor, {members.begin(), members.end()}}, StageClass::kRow);
  }

  // Each of them, with the elementwise ones before it inside.
  bool StaySmall(const std::set<int>& members) const {
    std::map<int, double> nodes;
    for (int s : members) {
      const double own = NodesWith(s, nodes);
      if (own > kMostInlinedNodes) return false;
      if (class_[s] == StageClass::kElementwise) nodes[s] = own;
    }
    return true;
  }

  // The stage's leading axes run over the rows, and it reads the group's tensors at them.
  bool SameRows(int s, const std::vector<Var>& rows) const {
    const Stage& stage = anatomy_.stage(s);
    if (class_[s] != StageClass::kRow && class_[s] != StageClass::kElementwise) return false;
    if (stage.axes.size() < rows.size() ||
        (class_[s] == StageClass::kRow && stage.axes.size() != rows.size()))
      return false;
    for (size_t a = 0; a < rows.size(); ++a) {
      if (stage.axes[a]->extent != rows[a]->extent) return false;
    }
    for (const ExprNode* load : LoadsOf(stage.value)) {
      if (anatomy_.ProducerOf(load->buffer.get()) < 0) continue;
      for (size_t a = 0; a < rows.size(); ++a) {
        if (a >= load->args.size() || load->args[a]->op != Op::kVar || load->args[a]->var != stage.axes[a])
          return false;
      }
    }
    return true;
  }

  bool Touches(int s, const std::set<int>& members) const {
    const auto in = [&](int other) { return members.count(other) > 0; };
    const StageInfo& info = anatomy_.info(s);
    return std::ranges::any_of(info.readers, in) || std::ranges::any_of(info.producers, in);
  }

  void Take(const Group& group, StageClass c) {
    for (int s : group.members) taken_[s] = true;
    parts_.emplace_back(group, c);
  }

  const Anatomy& anatomy_;
  const Target& target_;
  const bool on_gpu_;
  std::vector<StageClass> class_;
  std::vector<bool> taken_;
  Groups parts_;
};

}  // namespace

Groups GroupStages(const Anatomy& anatomy, const Target& target, bool streams) {
  return Grouping(anatomy, target, streams).groups();
}

}  // namespace mycc
