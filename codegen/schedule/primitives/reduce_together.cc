// reduce_together(R, S): computes a reduction, and a sum over the same axis that uses its result, in one
// pass. They become one reduction of tuples, in the place of the first.
//
//   for i: for k: R: t1[i] max= x[i, k]
//   for i: for k: E: t2[i, k] = exp(x[i, k] - t1[i])
//   for i: for k: S: t3[i] += t2[i, k]
//     ->
//   for i: for k: S: (t3[i], t1[i]) sum_exp_max= (1, x[i, k])
//   for i: for k: E: t2[i, k] = exp(x[i, k] - t1[i])          only if something else reads it
//
// joint_reduction.h lists what is known about such pairs. A part that only the merge of tuples needs, such as
// a count, has a buffer of its own.
#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/joint_reduction.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

class Together {
 public:
  Together(const Function& function, const Path& first, const Path& second)
      : function_(function),
        first_path_(first),
        second_path_(second),
        first_(first.block()),
        second_(second.block()) {}

  absl::StatusOr<Function> Run() {
    MYCC_RETURN_IF_ERROR(CheckBlocks());
    MYCC_ASSIGN_OR_RETURN(const Expr value, WrittenOut(second_.value));
    MYCC_ASSIGN_OR_RETURN(const VarMap axes, FirstInSecond(value));
    MYCC_ASSIGN_OR_RETURN(const JointReduction joint,
                          JoinReductions(first_.reduce, first_.out, Substitute(first_.value, axes), value,
                                         PointsOf(ReduceAxesOf(second_))));
    MYCC_ASSIGN_OR_RETURN(Function result, Replaced(joint));
    for (const std::string& block : looked_through_) MYCC_RETURN_IF_ERROR(DropIfUnread(block, &result));
    return result;
  }

 private:
  template <typename... Parts>
  absl::Status Refuse(const Parts&... why) const {
    return Refusal(first_.name, " and ", second_.name, " cannot be reduced together: ", why...);
  }

  absl::Status CheckBlocks() const {
    for (const Path* path : {&first_path_, &second_path_}) {
      MYCC_RETURN_IF_ERROR(CheckNaive(*path));
      MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function_, path->block()));
      if (LoopsOn(*path).size() != path->block().iters.size())
        return Refuse(path->block().name, " is inside a loop that is not its own");
    }
    if (first_.reduce == ReduceOp::kNone || first_.reduce.tuple() != nullptr ||
        second_.reduce != ReduceOp::kSum)
      return Refuse("expected a reduction to one value, and a sum");
    if (first_.out->shape != second_.out->shape) return Refuse("they have results of different shapes");
    const std::vector<const Block*> blocks = BlocksUnder(function_.body);
    if (std::ranges::find(blocks, &first_) > std::ranges::find(blocks, &second_))
      return Refuse(second_.name, " comes first");
    return CheckCanMove(function_, second_path_, first_path_);
  }

  // The value with the definitions of all elements that depend on the first result.
  absl::StatusOr<Expr> WrittenOut(const Expr& value) {
    absl::Status status;
    const Expr written = Rewrite(value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad || e->buffer == first_.out || !status.ok()) return nullptr;
      const Block* writer = WriterOf(function_, e->buffer);
      if (writer == nullptr || !DependsOnFirst(*writer)) return nullptr;
      const std::optional<VarMap> iters = ItersAt(*writer, e->args);
      if (writer->reduce != ReduceOp::kNone || !iters || !CheckOnlyWriter(function_, *writer).ok()) {
        status = Refuse(writer->name, ", between them, is no block of one value for each element");
        return nullptr;
      }
      if (std::ranges::count(looked_through_, writer->name) == 0) looked_through_.push_back(writer->name);
      const absl::StatusOr<Expr> inner = WrittenOut(Substitute(writer->value, *iters));
      status.Update(inner.status());
      return inner.ok() ? *inner : nullptr;
    });
    MYCC_RETURN_IF_ERROR(status);
    return written;
  }

  bool DependsOnFirst(const Block& block) {
    const auto [known, is_new] = depends_.emplace(&block, Reads(block, first_.out));
    if (!is_new || known->second) return known->second;
    return depends_[&block] = AnyExpr(block.value, [&](const ExprNode& e) {
             const Block* writer = e.op == Op::kLoad ? WriterOf(function_, e.buffer) : nullptr;
             return writer != nullptr && writer != &block && DependsOnFirst(*writer);
           });
  }

  // The second block's variables for those of the first: both run over the same axes in one order.
  absl::StatusOr<VarMap> FirstInSecond(const Expr& value) const {
    VarMap axes;
    const std::vector<Var> of_first = ReduceAxesOf(first_), of_second = ReduceAxesOf(second_);
    bool alike = std::ranges::equal(of_first, of_second, {}, &VarNode::extent, &VarNode::extent);
    for (size_t i = 0; alike && i < of_first.size(); ++i) axes[of_first[i].get()] = VarRef(of_second[i]);
    for (size_t d = 0; d < first_.indices.size(); ++d)
      axes[first_.indices[d]->var.get()] = second_.indices[d];
    bool reads = false;
    ForEachLoad(value, [&](const ExprNode& load) {
      if (load.buffer != first_.out) return;
      reads = true;
      alike &= StructurallyEqual(load.args, second_.indices);
    });
    if (!reads) return Refuse(second_.name, " does not use ", first_.out->name);
    if (!alike) return Refuse("they run over different axes");
    return axes;
  }

  absl::StatusOr<Function> Replaced(const JointReduction& joint) const {
    auto block = std::make_shared<Block>(second_);
    block->reduce = joint.reduce;
    block->value = joint.values[0];
    block->more = {{first_.out, joint.values[1]}};
    std::vector<Buffer> own;
    for (size_t i = 2; i < joint.values.size(); ++i) {
      const std::string name =
          absl::StrCat(second_.name, ".", joint.reduce.tuple()->parts[i].a->name.substr(2));
      own.push_back(MakeBuffer(FreshName(function_, name), joint.values[i]->dtype, second_.out->shape));
      block->more.push_back({own.back(), joint.values[i]});
    }
    const Function without_second = WithBody(function_, ReplaceAt(second_path_, nullptr));
    MYCC_ASSIGN_OR_RETURN(const Path first, FindBlock(without_second, first_.name));
    const Stmt nest = InLoops(NestOf(second_path_), std::move(block));
    return WithBody(function_, InAllocs(own, ReplaceAt(NestPath(first), nest)));
  }

  static absl::Status DropIfUnread(const std::string& name, Function* function) {
    MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(*function, name));
    const Buffer out = path.block().out;
    if (IsParam(*function, out) || ReadsAnywhere(function->body, out)) return absl::OkStatus();
    MYCC_ASSIGN_OR_RETURN(*function, WithoutAlloc(WithBody(*function, ReplaceAt(path, nullptr)), out));
    return absl::OkStatus();
  }

  const Function& function_;
  const Path& first_path_;
  const Path& second_path_;
  const Block& first_;
  const Block& second_;
  std::unordered_map<const Block*, bool> depends_;  // on the first block
  std::vector<std::string> looked_through_;         // blocks between the two, readers before what they read
};

}  // namespace

absl::StatusOr<Function> ReduceTogether(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path first, FindBlock(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Path second, FindBlock(function, args.Name(1)));
  return Together(function, first, second).Run();
}

}  // namespace mycc
