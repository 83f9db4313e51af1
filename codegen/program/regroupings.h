// Other cuts of a kernel, where fusion is not sure to be faster: both are measured, and the sum of their
// times decides. Pure.
#pragma once

#include <string>
#include <vector>

#include "codegen/program/graph_uses.h"

namespace mycc {

// Kernels that compute what one group of PartitionGraph computes, in an order of execution.
struct Regrouping {
  // "padding", "epilogue" or "producers": the part that is a kernel of its own; "chain": all parts are.
  std::string kind;
  std::vector<KernelGroup> parts;
};

// padding: the moves before a contraction, so that it reads plain tensors. epilogue: all from the first stage
// on that reads another tensor of full size, or that takes many instructions an element. producers: what is
// computed element by element before a reduction over rows. chain: the products and the rows of a chain along
// one axis, each for itself. None where the tensors between the parts have
// fewer elements: they cost less than a launch then, whatever is done with them.
std::vector<Regrouping> RegroupingsOf(const GraphUses& uses, const KernelGroup& group,
                                      int64_t least_elements = 4096);

}  // namespace mycc
