// Writes the interpreter's code: registers, lists, memories, jumps, expressions. interpreter_compile.cc, the
// compiler of statements, calls it. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "codegen/ir/interpreter_memory.h"
#include "codegen/ir/interpreter_program.h"

namespace mycc::interpreter {

class Assembler {
 protected:
  // Keeps the first error; assembling goes on with register, memory or list 0, and the program is never run.
  int Fail(const std::string& what);

  int64_t Here() const { return static_cast<int64_t>(program_.code.size()); }
  int64_t Emit(const Instr& instr);
  // Makes a forward jump end here.
  void Land(int64_t jump) { program_.code[jump].imm = Here(); }
  void Land(const std::vector<int64_t>& jumps);

  int NewRegister(Scalar initial = {});
  int List(const std::vector<int>& registers);

  // The slot of a buffer, from here to the end of its scope.
  int AddMemory(const Buffer& buffer, bool read_only);
  void EndMemory(const Buffer& buffer) { memories_.erase(buffer.get()); }
  bool HasMemory(const Buffer& buffer) const { return memories_.contains(buffer.get()); }
  int MemoryOf(const Buffer& buffer, bool write);

  // Each returns the register that will hold the value.
  int Expression(const ExprNode& expr);
  std::vector<int> Expressions(const std::vector<Expr>& exprs);

  absl::Status status_;
  Program program_;
  std::unordered_map<const VarNode*, int> variables_;        // registers of the variables in scope
  std::vector<std::pair<std::string, int>> loops_in_scope_;  // names and registers, outermost first
  std::optional<int> group_;                                 // of the enclosing roles
  int site_ = -1;
  bool in_launch_ = false;           // threads synchronize at statements; what they allocate is in registers
  bool in_nest_ = false;             // inside thread loops
  Threads readers_ = Threads::kAll;  // of several equal threads, those that execute the loads here

  std::unordered_map<const BufferNode*, int> parts_;  // registers of the tuples that are merged here

 private:
  int Select(const ExprNode& expr);
  int Operation(const ExprNode& expr);

  std::unordered_map<const BufferNode*, int> memories_;  // slots of the buffers in scope
};

}  // namespace mycc::interpreter
