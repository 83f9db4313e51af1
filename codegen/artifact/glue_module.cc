#include "codegen/artifact/glue_module.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/passes/lower.h"
#include "codegen/runtime/artifact/artifact.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

namespace mycc {
namespace {

// The tables are written field by field, 8 bytes each. A field that is added to a struct must be added here
// too.
static_assert(sizeof(MyccArg) == 10 * 8 && sizeof(MyccSignature) == 4 * 8);
static_assert(kPackedHeaderBytes == kMyccHeaderBytes);

std::pair<int64_t, int64_t> GlueType(DType dtype) {
  const int64_t bits = 8 * DTypeBytes(dtype);
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kF16: return {kDLFloat, bits};
    case DType::kBF16: return {kDLBfloat, bits};
    case DType::kI64:
    case DType::kI32:
    case DType::kI16:
    case DType::kI8: return {kDLInt, bits};
    case DType::kU64:
    case DType::kU32:
    case DType::kU16:
    case DType::kU8: return {kDLUInt, bits};
    case DType::kBool: return {kMyccCodeBool, bits};
    case DType::kF8E4M3: return {kMyccCodeF8E4M3, bits};
    case DType::kF8E5M2: return {kMyccCodeF8E5M2, bits};
  }
  return {kDLOpaqueHandle, bits};
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> BaselineMachine() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  const char* const triple = "x86_64-unknown-linux-gnu";
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return absl::InternalError(absl::StrCat("LLVM: ", error));
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, "x86-64", "", llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Less));
}

}  // namespace

GlueModule::GlueModule() : module_("glue", context_) {
  pointer_ = llvm::PointerType::get(context_, 0);
  i32_ = llvm::Type::getInt32Ty(context_);
  i64_ = llvm::Type::getInt64Ty(context_);
}

llvm::GlobalVariable* GlueModule::Global(llvm::Constant* value, bool constant) {
  return new llvm::GlobalVariable(module_, value->getType(), constant, llvm::GlobalValue::InternalLinkage,
                                  value);
}

llvm::Constant* GlueModule::Text(const std::string& text) {
  return Global(llvm::ConstantDataArray::getString(context_, text), true);
}

llvm::Constant* GlueModule::Bytes(const std::string& bytes) {
  llvm::GlobalVariable* global = Global(llvm::ConstantDataArray::getString(context_, bytes, false), true);
  global->setAlignment(llvm::Align(16));
  return global;
}

llvm::Constant* GlueModule::Array(const std::vector<llvm::Constant*>& rows) {
  if (rows.empty()) return Null();
  return Global(llvm::ConstantArray::get(llvm::ArrayType::get(rows[0]->getType(), rows.size()), rows), true);
}

llvm::Constant* GlueModule::Pointers(int64_t count) {
  return Global(llvm::ConstantAggregateZero::get(llvm::ArrayType::get(pointer_, count)), false);
}

llvm::Constant* GlueModule::Row(llvm::ArrayRef<llvm::Constant*> fields) {
  return llvm::ConstantStruct::getAnon(context_, fields);
}

llvm::Constant* GlueModule::ArgRow(const EntryArg& arg, int64_t alignment) {
  std::vector<llvm::Constant*> shape;
  for (int64_t extent : arg.shape) shape.push_back(Int(extent));
  auto [code, bits] = GlueType(arg.dtype);
  if (arg.is_text) code = kDLOpaqueHandle;
  int64_t bounded = 0;
  for (const int axis : arg.bounded) bounded |= int64_t{1} << axis;
  if (alignment == 0) alignment = DTypeBytes(arg.dtype);
  if (!arg.header.empty()) alignment = kMyccPackedAlignment;
  return Row({Text(arg.name), Int(code), Int(bits), Int(shape.size()), Array(shape), Int(arg.bytes()),
              Int(alignment), Int(arg.is_output), arg.header.empty() ? Null() : Bytes(arg.header),
              Int(bounded)});
}

std::vector<llvm::Constant*> GlueModule::SignatureFields(const Entry& entry, int64_t alignment) {
  std::vector<llvm::Constant*> args;
  for (const EntryArg& arg : entry.args) args.push_back(ArgRow(arg, alignment));
  return {Text(entry.symbol), entry.packer.empty() ? Null() : Text(entry.packer), Int(args.size()),
          Array(args)};
}

void GlueModule::Define(const std::string& name, llvm::Constant* value) {
  llvm::GlobalVariable* global = Global(value, true);
  global->setName(name);
  global->setLinkage(llvm::GlobalValue::ExternalLinkage);
  global->setVisibility(llvm::GlobalValue::HiddenVisibility);
}

llvm::Function* GlueModule::Hidden(const std::string& name, llvm::FunctionType* type) {
  if (llvm::Function* known = module_.getFunction(name)) return known;
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module_);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return function;
}

llvm::Constant* GlueModule::HiddenData(const std::string& name) {
  auto* data = new llvm::GlobalVariable(module_, llvm::Type::getInt8Ty(context_), /*isConstant=*/true,
                                        llvm::GlobalValue::ExternalLinkage, nullptr, name);
  data->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return data;
}

llvm::Constant* GlueModule::Counters(int64_t count) {
  return Global(llvm::ConstantAggregateZero::get(llvm::ArrayType::get(i64_, count)), false);
}

void GlueModule::ExportWith(const std::string& name, const std::string& target,
                            const std::vector<llvm::Constant*>& first, llvm::FunctionType* type) {
  llvm::IRBuilder<> builder = Export(name, type);
  std::vector<llvm::Value*> args(first.begin(), first.end());
  for (llvm::Argument& arg : builder.GetInsertBlock()->getParent()->args()) args.push_back(&arg);
  std::vector<llvm::Type*> types;
  for (const llvm::Value* arg : args) types.push_back(arg->getType());
  builder.CreateRet(
      builder.CreateCall(Hidden(target, llvm::FunctionType::get(type->getReturnType(), types, false)), args));
}

llvm::BasicBlock* GlueModule::DefineHidden(const std::string& name, llvm::FunctionType* type) {
  llvm::Function* function = Hidden(name, type);
  function->setUWTableKind(llvm::UWTableKind::Async);
  return llvm::BasicBlock::Create(context_, "", function);
}

llvm::FunctionType* GlueModule::BodyType() {
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer_, pointer_, pointer_}, false);
}

llvm::IRBuilder<> GlueModule::Export(const std::string& name, llvm::FunctionType* type) {
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module_);
  function->setUWTableKind(llvm::UWTableKind::Async);
  return llvm::IRBuilder<>(llvm::BasicBlock::Create(context_, "", function));
}

// name(args...) { return target(args...); }
void GlueModule::ExportJump(const std::string& name, llvm::Function* target) {
  llvm::IRBuilder<> builder = Export(name, target->getFunctionType());
  std::vector<llvm::Value*> args;
  for (llvm::Argument& arg : builder.GetInsertBlock()->getParent()->args()) args.push_back(&arg);
  llvm::CallInst* call = builder.CreateCall(target, args);
  call->setTailCallKind(llvm::CallInst::TCK_Tail);
  builder.CreateRet(call);
}

void GlueModule::ExportModule(const LibrarySpec& spec, const std::string& prepare, const std::string& json) {
  ExportJump(spec.module + "_prepare", Hidden(prepare, llvm::FunctionType::get(i32_, {i32_}, false)));
  llvm::FunctionType* text_type = llvm::FunctionType::get(pointer_, {}, false);
  ExportJump(spec.module + "_last_error", Hidden("MyccLastError", text_type));
  llvm::IRBuilder<> builder = Export(spec.module + "_json", text_type);
  builder.CreateRet(Text(json));
}

void GlueModule::ExportCalls(const std::vector<Entry>& entries, llvm::Constant* table, llvm::Type* row_type,
                             const std::string& target, bool with_stream) {
  llvm::FunctionType* type = llvm::FunctionType::get(i32_, {pointer_, i32_, pointer_}, false);
  std::vector<llvm::Type*> target_types = {pointer_, pointer_, i32_};
  if (with_stream) target_types.push_back(pointer_);
  llvm::Function* function = Hidden(target, llvm::FunctionType::get(i32_, target_types, false));
  for (size_t i = 0; i < entries.size(); ++i) {
    llvm::IRBuilder<> builder = Export(entries[i].symbol, type);
    std::vector<llvm::Value*> args = {llvm::ConstantExpr::getInBoundsGetElementPtr(row_type, table, Int(i))};
    for (llvm::Argument& arg : builder.GetInsertBlock()->getParent()->args()) {
      if (args.size() < target_types.size()) args.push_back(&arg);
    }
    llvm::CallInst* call = builder.CreateCall(function, args);
    if (!with_stream) call->setTailCallKind(llvm::CallInst::TCK_Tail);
    builder.CreateRet(call);
  }
}

absl::StatusOr<std::string> GlueModule::EmitObject() {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<llvm::TargetMachine> machine, BaselineMachine());
  module_.setTargetTriple(machine->getTargetTriple().str());
  module_.setDataLayout(machine->createDataLayout());
  module_.setPICLevel(llvm::PICLevel::BigPIC);
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("LLVM: the x86-64 back end writes no object files");
  }
  passes.run(module_);
  return object.str().str();
}

}  // namespace mycc
