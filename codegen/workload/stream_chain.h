// Finds the chains of stages that one pass over an axis computes: products, reductions of them, and a sum of
// products with what they give. Attention is one: scores, their maximum, exponentials, their sum, and the
// weighted sum of values. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/workload/stage_links.h"

namespace mycc {

// Stages by number. The axis is the only reduction axis of `sum`; a tile is a part of rows and of the axis.
// Other stages that members read, such as masks, do not depend on the scores.
struct StreamChain {
  int sum = -1;                 // the contraction over the axis
  int scores = -1;              // the contraction that makes the first tile
  std::vector<int> tiles;       // elementwise stages on the rows and the axis, in order
  std::vector<int> reductions;  // over the axis, of the rows, in order
  std::vector<int> rows;        // elementwise stages of the rows alone, computed from reductions
  std::vector<int> epilogue;    // elementwise stages on the sum's axes

  // The loads that are multiplied, in the sum and in the scores.
  Expr weights, values, queries, keys;

  // The sum's axes: those of the rows that its weights alone have (queries; the longest comes last), those of
  // the values alone, and those of both (batches, heads).
  std::vector<int> row_axes, value_axes, batch_axes;
  // The dimension of the tiles' tensors along the axis, and those of each of the sum's row and batch axes.
  int stream_dim = -1;
  std::vector<int> dim_of_axis;  // by the sum's axes; -1 for those of the values

  std::vector<int> Members() const;  // all stages, in order
};

// The chain that ends in stage `sum`; nullopt when there is none. `links` are the workload's.
std::optional<StreamChain> FindStreamChain(const Workload& workload, const StageLinks& links, int sum);

// Why there is none, where stage `sum` multiplies values by what is computed from another product; empty
// where there is one, and where `sum` is nothing of the kind.
std::string WhyNoStreamChain(const Workload& workload, const StageLinks& links, int sum);

}  // namespace mycc
