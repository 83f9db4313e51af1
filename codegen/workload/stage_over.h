// The parts of new stages, for rewrites. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

// A stage without a value, over axes a0, a1, .. of a new tensor; and axes as a shape, and as an index.
Stage StageOver(const std::string& tensor, DType dtype, const std::vector<int64_t>& shape);
std::vector<int64_t> ExtentsOf(const std::vector<Var>& axes);
std::vector<Expr> IndexOf(const std::vector<Var>& axes);

}  // namespace mycc
