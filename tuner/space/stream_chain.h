// Finds the chains of stages that one pass over an axis computes: products, reductions of them, and a sum of
// products with what they give. Attention is one: scores, their maximum, exponentials, their sum, and the
// weighted sum of values. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/space/anatomy.h"

namespace mycc {

// Stages by number. The axis is the only reduction axis of `sum`; a tile is a part of rows and of the axis.
struct StreamChain {
  int sum = -1;                 // the contraction over the axis
  int scores = -1;              // the contraction that makes the first tile
  std::vector<int> tiles;       // elementwise stages on the rows and the axis, in order
  std::vector<int> reductions;  // over the axis, of the rows, in order
  std::vector<int> rows;        // elementwise stages of the rows alone, computed from reductions
  std::vector<int> epilogue;    // elementwise stages on the sum's axes

  // The loads that are multiplied, in the sum and in the scores.
  Expr weights, values, queries, keys;

  // Of the sum's axes, those of the rows that its weights alone have (queries), those of the values alone,
  // and those of both (batches, heads).
  std::vector<int> row_axes, value_axes, batch_axes;
  // The dimension of the tiles' tensors along the axis, and those of each of the sum's row and batch axes.
  int stream_dim = -1;
  std::vector<int> dim_of_axis;  // by the sum's axes; -1 for those of the values

  std::vector<int> Members() const;  // all stages, in order
};

// The dimension of a load that is indexed by exactly this variable, and by it alone; -1: none.
int PlainDim(const Expr& load, const Var& var);

// The chain that ends in stage `sum`; nullopt when there is none.
std::optional<StreamChain> FindStreamChain(const Anatomy& anatomy, int sum);

}  // namespace mycc
