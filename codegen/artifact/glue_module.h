// Writes a library's tables, constants and exported functions as an LLVM module for the oldest x86-64, since
// this code runs before the machine is checked. The only header of this folder with LLVM types. Thread rule:
// thread-compatible.
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
  // Pointers to a text that ends in zero, to bytes as they are, and to several rows (null for none).
  llvm::Constant* Text(const std::string& text);
  llvm::Constant* Bytes(const std::string& bytes);
  llvm::Constant* Array(const std::vector<llvm::Constant*>& rows);
  // A pointer to `count` pointers that begin as null and may be written.
  llvm::Constant* Pointers(int64_t count);
  // A struct of fields, not behind a pointer.
  llvm::Constant* Row(llvm::ArrayRef<llvm::Constant*> fields);
  // The fields of a MyccSignature. Arguments that are not packed are aligned to `alignment` bytes, or (0) to
  // one element.
  std::vector<llvm::Constant*> SignatureFields(const Entry& entry, int64_t alignment);
  // Defines the hidden variable `name`, by which the artifact runtime finds the tables.
  void Define(const std::string& name, llvm::Constant* value);

  // A function that the kernels or the artifact runtime define. Its address has no type of its own.
  llvm::Function* Hidden(const std::string& name, llvm::FunctionType* type);
  llvm::FunctionType* BodyType();
  // Exports the functions that every library has beside its own; `prepare` is a function of the runtime.
  void ExportModule(const LibrarySpec& spec, const std::string& prepare, const std::string& json);
  // Each entry's symbol, as a jump to `target` with row i of the array `table` and the caller's arguments,
  // the stream being passed on or not.
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
