// One kernel in IR form: its parameters and its body. Thread rule: a value, and pure functions.
#pragma once

#include <string>
#include <vector>

#include "codegen/ir/stmt.h"
#include "codegen/workload/workload.h"

namespace mycc {

enum class ParamKind : uint8_t { kInput, kConst, kOutput };

struct Param {
  Buffer buffer;
  ParamKind kind;
};

// Parameters in declared order: inputs (const or not), then outputs.
struct Function {
  std::string name;
  std::vector<Param> params;
  Stmt body;
};

// One stage as a block under its own serial loops. An argmax or argmin reduces tuples: positions into the
// stage's tensor, values into `best`, which the caller allocates.
Stmt BuildStage(const Stage& stage, const Buffer& best = nullptr);

// The naive loop nest: every stage of the canonical workload as one block under its own serial loops, in
// order; intermediate tensors allocated around the body. Blocks are named after the stage's tensor (t3),
// loops after block and axis (t3.a0, t3.r1). REQUIRES: `workload` is canonical (see workload/canonical.h).
Function BuildNaive(const Workload& workload);

// Pseudocode: one line a statement, two spaces a level. Deterministic; the form of goldens and of `mycc
// explain`.
std::string PrintFunction(const Function& function);
std::string PrintStmt(const Stmt& stmt);
// The name of a statement in error messages: "block t3", or its first line in quotes.
std::string StmtName(const Stmt& stmt);

}  // namespace mycc
