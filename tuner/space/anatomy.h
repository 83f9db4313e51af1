// The facts about a workload that rules need: readers and producers of each stage, which stages are
// contractions, which loops index which operand. Thread rule: a value over the workload it was made from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/workload/stage_links.h"
#include "codegen/workload/workload.h"

namespace mycc {

// One operand of a contraction: a load, alone or under one cast.
struct Operand {
  Buffer buffer;
  std::vector<Expr> index;
  bool is_const = false;  // a const input
  int producer = -1;      // the stage that computes it, or -1 for an input
  bool is_cast = false;   // the product is of the load cast to the stage's type: f32(a[i,k]) * ..
  bool is_tf32 = false;   // or rounded: tf32(a[i,k]) * ..
  bool is_first = false;  // the left factor

  bool Uses(const Var& var) const;
  // The dimension indexed by exactly this variable; -1 where it stands in a larger expression or nowhere.
  int PlainDim(const Var& var) const;
  // The dimension that alone depends on the variable, and moves with it element by element: of w[k.0*8 + k.1,
  // c], with k.1, dimension 0. -1: none.
  int UnitDim(const Var& var) const;
};

// An axis along which groups of `extent` elements lie: one operand knows of the group alone, the other of the
// place in it.
struct GroupedAxis {
  int axis;
  int64_t extent;
};

// out[rows..., cols...] = sum over reduction axes of scalar_operand * vector_operand. The last axis of the
// output that has more than one element indexes the vector operand alone: its elements become the lanes of
// vectors, those of the scalar operand are broadcast.
struct Contraction {
  std::optional<GroupedAxis> groups;  // grouped convolution: y[k] of x[k//KG*CG + c] and w[k,c]
  std::vector<GroupedAxis> phases;    // transposed convolution: y[i] of x[i//2 - r] and w[r*2 + i%2]
  Operand scalar, vector;
  // Axes of Anatomy::product.
  std::vector<int> rows;   // of the scalar operand alone
  std::vector<int> cols;   // of the vector operand alone; the last one is the lane axis
  std::vector<int> batch;  // of both, or of neither

  bool OfOneTensor() const { return scalar.buffer == vector.buffer; }  // a gram matrix
};

struct StageInfo {
  std::vector<int> readers;    // stages, each once
  std::vector<int> producers;  // stages whose tensors it reads, each once
  bool is_output = false;
  double ops_per_element = 0;  // arithmetic on values in one evaluation, transcendental functions counted ten
  std::optional<Contraction> contraction;
};
// The other way round: lanes along the last of the rows, the other operand broadcast.
Contraction Crosswise(const Contraction& contraction);
// Whether a contraction's operands are multiplied in another type than they are stored in, or rounded first.
bool HasCast(const Contraction& contraction);

class Anatomy {
 public:
  explicit Anatomy(const Workload& canonical);

  const Workload& workload() const { return workload_; }
  const StageLinks& links() const { return links_; }
  const Stage& stage(int s) const { return workload_.stages[s]; }
  // The stage as its contraction sees it: a grouped axis is two, the group and the place in it, as split_axis
  // makes and calls them, and so is one with phases. The output's dimensions are those of stage(s).
  const Stage& product(int s) const { return products_[s]; }
  const StageInfo& info(int s) const { return infos_[s]; }
  int num_stages() const { return static_cast<int>(infos_.size()); }
  const std::string& name(int s) const { return stage(s).output->name; }
  // "t3.a1", "t3.r0": the loop of an axis in the naive nest.
  std::string Loop(int s, int axis) const;
  std::string ReduceLoop(int s, int axis) const;
  // The stage that computes a buffer, or -1 for an input.
  int ProducerOf(const BufferNode* buffer) const { return links_.ProducerOf(buffer); }
  // Every read of the producer's tensor in the reader is at the reader's own axes, in order.
  bool ReadsElementwise(int reader, int producer) const;

 private:
  Workload workload_;
  StageLinks links_;
  std::vector<Stage> products_;
  std::vector<StageInfo> infos_;
};

// Every read is at the position of the stage's own element, or a scalar: the stage is one flat loop, whose
// vectors may run across the ends of rows.
bool IsFlat(const Stage& stage);
// How the flattened address of a load moves when `var` grows by one: 0 broadcast, 1 contiguous; nullopt where
// it is not linear.
std::optional<int64_t> StrideOf(const ExprNode& load, const Var& var);

}  // namespace mycc
