// The workload of a group of stages in a form that says less: without dimensions of one element, and with
// dimensions that always stand together as one. Equal computations on tensors of other ranks become one
// kernel, a convolution of 1 x 1 becomes a matrix product, and rules see rows where there are rows. Pure.
#pragma once

#include "codegen/workload/workload.h"

namespace mycc {

// The tensors keep their elements in their row-major order, so the memory of a call is the same. Workloads
// with windows over images keep their dimensions, which their rules know.
Workload NormalForm(Workload workload);

// The same for workloads that are known to have no images, whatever their reductions read.
Workload NormalFormWithoutImages(Workload workload);

// The workload without dimensions of one element, which are read at 0; its stages keep their order.
Workload WithoutUnits(Workload workload);

}  // namespace mycc
