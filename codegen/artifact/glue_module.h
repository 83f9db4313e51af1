// Writes a library's tables, constants and exported functions as an LLVM module. Its code is for baseline
// x86-64, because it runs before the machine is checked. The only header of this folder with LLVM types.
// Thread rule: thread-compatible.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/entry.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace mycc {

class GlueModule {
 public:
  GlueModule();

  llvm::Constant* Int(int64_t value) { return llvm::ConstantInt::getSigned(i64_, value); }
  llvm::Constant* Int32(uint32_t value) { return llvm::ConstantInt::get(i32_, value); }
  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(pointer_); }
  // Pointers to a zero-terminated text, to bytes, and to an array of rows (null without rows).
  llvm::Constant* Text(const std::string& text);
  llvm::Constant* Bytes(const std::string& bytes);
  llvm::Constant* Array(const std::vector<llvm::Constant*>& rows);
  // A pointer to a writable array of `count` null pointers.
  llvm::Constant* Pointers(int64_t count);
  // A struct of these fields, by value.
  llvm::Constant* Row(llvm::ArrayRef<llvm::Constant*> fields);
  // The fields of a MyccSignature. Arguments that are not packed must be aligned to `alignment` bytes; 0: to
  // one element.
  std::vector<llvm::Constant*> SignatureFields(const Entry& entry, int64_t alignment);
  // Defines the hidden variable `name`, by which the artifact runtime finds the tables.
  void Define(const std::string& name, llvm::Constant* value);

  // Declares a hidden function that the kernels or the artifact runtime define.
  llvm::Function* Hidden(const std::string& name, llvm::FunctionType* type);
  llvm::FunctionType* BodyType();
  // Data of another object file.
  llvm::Constant* HiddenData(const std::string& name);
  // Writable integers, zero at first.
  llvm::Constant* Counters(int64_t count);
  // Exports `name` as a jump to the hidden function `target`, with `first` before the caller's arguments.
  void ExportWith(const std::string& name, const std::string& target,
                  const std::vector<llvm::Constant*>& first, llvm::FunctionType* type);
  // Begins a hidden function, for its code.
  llvm::BasicBlock* DefineHidden(const std::string& name, llvm::FunctionType* type);
  // Exports the functions that every library has besides its kernels. `prepare` names the runtime's function
  // behind MODULE_prepare.
  void ExportModule(const LibrarySpec& spec, const std::string& prepare, const std::string& json);
  // Exports entry i's symbol as a jump to `target` with row i of the array `table` and the caller's
  // arguments; the stream is passed on if `with_stream`.
  void ExportCalls(const std::vector<Entry>& entries, llvm::Constant* table, llvm::Type* row_type,
                   const std::string& target, bool with_stream);

  absl::StatusOr<std::string> EmitObject();

 private:
  llvm::GlobalVariable* Global(llvm::Constant* value, bool constant);
  llvm::Constant* ArgRow(const EntryArg& arg, int64_t alignment);
  llvm::IRBuilder<> Export(const std::string& name, llvm::FunctionType* type);
  void ExportJump(const std::string& name, llvm::Function* target);

  llvm::LLVMContext context_;
  llvm::Module module_;
  llvm::PointerType* pointer_;
  llvm::Type* i32_;
  llvm::Type* i64_;
};

}  // namespace mycc
