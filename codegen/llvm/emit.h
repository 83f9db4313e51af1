// The CPU back end: emits lowered IR as x86-64 object code through LLVM. No LLVM type appears here, so that
// LLVM's headers stay in this folder.
//
// Thread rule: functions are re-entrant; each call uses its own LLVMContext.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"

namespace mycc {

// One kernel of a module, emitted as two functions with hidden visibility:
//   void SYMBOL_body(void* const* tensors, uint8_t* shared_workspace, uint8_t* thread_workspaces);
//   void SYMBOL_pack_body(void* const* tensors, uint8_t* shared_workspace, uint8_t* thread_workspaces);
// `tensors` of _body: one data pointer for each parameter in order; for const ones their packed u8 buffer
// (header included). `tensors` of _pack_body: the const inputs in order, then their packed buffers in order
// (the artifact runtime writes the headers). Thread t of a team uses thread_workspaces + t *
// workspace_thread_bytes. Data pointers are aligned to one element, packed buffers and workspaces to 64
// bytes.
struct EmitUnit {
  std::string symbol;
  LoweredFunction lowered;
};

enum class EmitKind { kObject, kLlvmIr, kAssembly };

// Errors: Internal with LLVM's message; InvalidArgument for an unknown mcpu or feature.
absl::StatusOr<std::string> EmitModule(const std::vector<EmitUnit>& units, const Target& target,
                                       EmitKind kind);

// "llvm-19.1.7", part of the code digest and of records.
std::string LlvmToolchain();

}  // namespace mycc
