// The producers and the readers of the tensors of a workload's stages. Thread rule: a value, immutable once
// built.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

// Stages by number.
class StageLinks {
 public:
  explicit StageLinks(const Workload& workload);

  // The stage that computes a tensor; -1 for an input.
  int ProducerOf(const BufferNode* tensor) const;
  // Each once, in the order of the first read.
  const std::vector<int>& ProducersOf(int s) const { return producers_[s]; }
  // Each once, ascending.
  const std::vector<int>& ReadersOf(int s) const { return readers_[s]; }
  bool IsOutput(int s) const { return is_output_[s]; }
  // The stages, and all that they are computed from; and all that are computed from them.
  std::set<int> WithProducers(std::set<int> stages) const;
  std::set<int> WithReaders(std::set<int> stages) const;

 private:
  std::unordered_map<const BufferNode*, int> producer_of_;
  std::vector<std::vector<int>> producers_, readers_;
  std::vector<bool> is_output_;
};

// The loads of an expression; those in an index come after the load that it belongs to.
std::vector<const ExprNode*> LoadsOf(const Expr& expr);

// The load is at these axes, in order; or every read of `tensor` in the stage is at the stage's own.
bool IsAt(const ExprNode& load, const std::vector<Var>& axes);
bool ReadsAtOwnAxes(const Stage& stage, const Buffer& tensor);
// The load, or every read of `tensor`, is of the element with the row-major number of the stage's element:
// its dimensions are the stage's, but for dimensions of extent 1 on either side.
bool IsAtOwnPosition(const ExprNode& load, const Stage& stage);
bool ReadsAtOwnPosition(const Stage& stage, const Buffer& tensor);

}  // namespace mycc
