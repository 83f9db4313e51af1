// The stages of one row group, in the form that the GPU's row rules share.
#pragma once

#include <string>
#include <vector>

#include "tuner/space/part.h"
#include "tuner/space/rules/joint_rows.h"

namespace mycc {

// The tensors that stay in registers between the stages on a row.
enum Keep : int64_t { kReadAgain = 0, kKeepInputs = 1, kKeepAll = 2 };

struct RowMember {
  std::string name;
  int stage;
  bool is_reduction = false;
  bool is_arg = false;   // the place of an argmax or argmin; the member before it is its value
  bool is_kept = false;  // a row that later members read at their own places: it may stay in registers
  int64_t bytes = 4;     // of an element
  std::vector<std::string> rows;   // loops
  std::vector<std::string> along;  // loops along the row; none for one value a row
};

// A tensor that several members read, each at its own places along the row.
struct RowInput {
  Buffer buffer;
};

struct RowPlan {
  std::vector<RowMember> members;  // in order, the anchor last
  std::vector<RowInput> inputs;
  int split = -1;                  // the axis of the rows that is cut among the thread groups of a block
  int64_t rows = 1;                // its extent
  int64_t rows_of_output = 0;      // rows in all; 0: the output is one value
  int64_t length = 1;              // of the longest member's row
  int64_t lanes = 1;               // that vectors along it may have
  std::optional<JointRows> joint;  // two of the members' reductions in one pass
};
RowPlan MakeRowPlan(const Anatomy& anatomy, const Group& group);
// The same with two reductions in one pass over the row; nullopt where the group has no such pair.
std::optional<RowPlan> JoinedRowPlan(const Anatomy& anatomy, const Group& group, const RowPlan& plan,
                                     const Target& target);

// Rows so few that they leave most of the GPU without work, and long enough to be cut.
bool IsLongForFewBlocks(const RowPlan& plan, const Target& target);

// The rule for those: each stage a launch of its own, reductions in runs (row_runs.cc).
Part RowRunsPart(const Anatomy& anatomy, const RowPlan& plan, const Target& target);

}  // namespace mycc
