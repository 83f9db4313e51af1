// Orders expressions independently of names, and computes digests of stages: the sort keys of the canonical
// form.
//
// Expressions are compared first without extents and constants, so that a computation has the same order at
// every shape, then with them. Thread rule: one owner.
#pragma once

#include <string>
#include <unordered_map>

#include "codegen/workload/workload.h"

namespace mycc {

class StageOrder {
 public:
  explicit StageOrder(const Workload& workload);

  // Returns the stage's value with the operands of commutative operations in order, and computes the stage's
  // digest. REQUIRES: AddStage was called for every stage that it reads.
  Expr AddStage(const Stage& stage);

  // Equal for stages that compute the same from the same inputs. REQUIRES: AddStage was called for the
  // tensor's stage.
  const std::string& Digest(const BufferNode* tensor) const { return keys_.at(tensor).full; }

 private:
  enum class Detail { kSkeleton, kFull };

  struct TensorKey {
    int input = -1;  // position among the inputs, or -1 for a stage
    std::string skeleton;
    std::string full;
  };

  int Compare(const Expr& a, const Expr& b) const;
  int CompareWith(Detail detail, const ExprNode& a, const ExprNode& b) const;
  int CompareTensors(Detail detail, const BufferNode* a, const BufferNode* b) const;
  void Serialize(Detail detail, const ExprNode& expr, std::string* out) const;
  std::string DigestOf(Detail detail, const Stage& stage, const Expr& value) const;

  std::unordered_map<const BufferNode*, TensorKey> keys_;
  // The axes of the stage being added, then its reduction axes.
  std::unordered_map<const VarNode*, int> axes_;
};

}  // namespace mycc
