// Reports on a compiled model, for people: a table of its kernels, of its launches, and a drawing of its
// graph. Pure.
#pragma once

#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "mycc/finder.h"
#include "mycc/groupings.h"

namespace mycc {

// One row for each kernel: how often it is launched, where its schedule came from, its expected time and
// share of the whole; below, the groupings that were chosen, the expected whole and the memory.
std::string ModelTable(const ModelProgram& program, const std::vector<Found>& found,
                       const std::vector<ChosenGrouping>& groupings);

// One row for each launch: its kernel, its result, its place in memory, and the model's nodes in it.
std::string LaunchTable(const ModelProgram& program);

// The launches and the tensors between them, in the language of Graphviz.
std::string ModelDot(const ModelProgram& program);

}  // namespace mycc
