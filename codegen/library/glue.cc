#include "codegen/library/glue.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/library/cpu_needs.h"
#include "codegen/runtime/artifact/artifact.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

namespace mycc {
namespace {

// The tables are written field by field, each 8 bytes wide; a field added there must be added here.
static_assert(sizeof(MyccArg) == 9 * 8 && sizeof(MyccEntry) == 9 * 8 && sizeof(MyccCpuNeed) == 6 * 8 &&
              sizeof(MyccModule) == 6 * 8);
static_assert(kPackedHeaderBytes == kMyccHeaderBytes);

std::pair<int64_t, int64_t> DLPackType(DType dtype) {
  const int64_t bits = 8 * DTypeBytes(dtype);
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kF16: return {kDLFloat, bits};
    case DType::kBF16: return {kDLBfloat, bits};
    case DType::kI64:
    case DType::kI32:
    case DType::kI8: return {kDLInt, bits};
    case DType::kU8: return {kDLUInt, bits};
    case DType::kBool: return {kMyccCodeBool, bits};
  }
  return {kDLOpaqueHandle, bits};
}

class GlueBuilder {
 public:
  GlueBuilder(llvm::Module* module, const LibrarySpec& spec)
      : module_(module), context_(module->getContext()), spec_(spec) {
    pointer_ = llvm::PointerType::get(context_, 0);
    i32_ = llvm::Type::getInt32Ty(context_);
    i64_ = llvm::Type::getInt64Ty(context_);
  }

  absl::Status Build(const std::vector<Entry>& entries, const std::string& json) {
    std::vector<llvm::Constant*> rows, needs;
    for (const Entry& entry : entries) rows.push_back(EntryRow(entry));
    MYCC_ASSIGN_OR_RETURN(const std::vector<MyccCpuNeed> cpu_needs, CpuNeeds(spec_.target));
    for (const MyccCpuNeed& need : cpu_needs) {
      needs.push_back(Row({Text(need.name), Int(need.leaf), Int(need.subleaf), Int(need.reg), Int(need.bit),
                           Int(need.xcr0)}));
    }
    llvm::Constant* table = Array(rows);
    llvm::Constant* module_row = Row({Text(spec_.module), Text(PrintTarget(spec_.target)), Int(needs.size()),
                                      Array(needs), Int(rows.size()), table});
    llvm::GlobalVariable* global = Global(module_row, true, "mycc_module");
    global->setLinkage(llvm::GlobalValue::ExternalLinkage);
    global->setVisibility(llvm::GlobalValue::HiddenVisibility);

    llvm::FunctionType* call_type = llvm::FunctionType::get(i32_, {pointer_, pointer_, i32_}, false);
    for (size_t i = 0; i < entries.size(); ++i)
      ExportCall(entries[i], Element(table, rows[i]->getType(), i), Hidden("MyccCall", call_type));
    llvm::FunctionType* prepare_type = llvm::FunctionType::get(i32_, {i32_}, false);
    ExportJump(spec_.module + "_prepare", Hidden("MyccPrepare", prepare_type));
    llvm::FunctionType* text_type = llvm::FunctionType::get(pointer_, {}, false);
    ExportJump(spec_.module + "_last_error", Hidden("MyccLastError", text_type));
    llvm::IRBuilder<> builder = Export(spec_.module + "_json", text_type);
    builder.CreateRet(Text(json));
    return absl::OkStatus();
  }

 private:
  llvm::Constant* Int(int64_t value) { return llvm::ConstantInt::getSigned(i64_, value); }
  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(pointer_); }

  llvm::GlobalVariable* Global(llvm::Constant* value, bool constant, const std::string& name = "") {
    return new llvm::GlobalVariable(*module_, value->getType(), constant, llvm::GlobalValue::InternalLinkage,
                                    value, name);
  }
  llvm::Constant* Text(const std::string& text) {
    return Global(llvm::ConstantDataArray::getString(context_, text), true);
  }
  llvm::Constant* Bytes(const std::string& bytes) {
    return Global(llvm::ConstantDataArray::getString(context_, bytes, false), true);
  }
  llvm::Constant* Row(llvm::ArrayRef<llvm::Constant*> fields) {
    return llvm::ConstantStruct::getAnon(context_, fields);
  }
  llvm::Constant* Array(const std::vector<llvm::Constant*>& rows) {
    if (rows.empty()) return Null();
    return Global(llvm::ConstantArray::get(llvm::ArrayType::get(rows[0]->getType(), rows.size()), rows),
                  true);
  }
  llvm::Constant* Element(llvm::Constant* array, llvm::Type* type, int64_t index) {
    return llvm::ConstantExpr::getInBoundsGetElementPtr(type, array, Int(index));
  }

  llvm::Constant* ArgRow(const EntryArg& arg) {
    std::vector<llvm::Constant*> shape;
    for (int64_t extent : arg.shape) shape.push_back(Int(extent));
    const auto [code, bits] = DLPackType(arg.dtype);
    const int64_t alignment =
        arg.header.empty() ? DTypeBytes(arg.dtype) : static_cast<int64_t>(kMyccPackedAlignment);
    return Row({Text(arg.name), Int(code), Int(bits), Int(shape.size()), Array(shape), Int(arg.bytes()),
                Int(alignment), Int(arg.is_output), arg.header.empty() ? Null() : Bytes(arg.header)});
  }

  // Packing happens once, so its workspace is not kept.
  llvm::Constant* EntryRow(const Entry& entry) {
    std::vector<llvm::Constant*> args;
    for (const EntryArg& arg : entry.args) args.push_back(ArgRow(arg));
    const LoweredFunction& lowered = entry.kernel->lowered;
    llvm::FunctionType* body_type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer_, pointer_, pointer_}, false);
    llvm::Constant* pool = Null();
    if (!entry.is_packer)
      pool = Global(llvm::ConstantAggregateZero::get(llvm::ArrayType::get(pointer_, kMyccPoolSlots)), false);
    return Row({Text(entry.symbol), entry.packer.empty() ? Null() : Text(entry.packer), Int(args.size()),
                Array(args), Hidden(entry.body, body_type), Int(lowered.workspace_shared_bytes),
                Int(lowered.workspace_thread_bytes), Int(lowered.parallel), pool});
  }

  llvm::Function* Hidden(const std::string& name, llvm::FunctionType* type) {
    if (llvm::Function* known = module_->getFunction(name)) return known;
    llvm::Function* function =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module_);
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return function;
  }

  llvm::IRBuilder<> Export(const std::string& name, llvm::FunctionType* type) {
    llvm::Function* function =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module_);
    function->setUWTableKind(llvm::UWTableKind::Async);
    return llvm::IRBuilder<>(llvm::BasicBlock::Create(context_, "", function));
  }

  // name(args...) { return target(args...); }
  void ExportJump(const std::string& name, llvm::Function* target) {
    llvm::IRBuilder<> builder = Export(name, target->getFunctionType());
    std::vector<llvm::Value*> args;
    for (llvm::Argument& arg : builder.GetInsertBlock()->getParent()->args()) args.push_back(&arg);
    llvm::CallInst* call = builder.CreateCall(target, args);
    call->setTailCallKind(llvm::CallInst::TCK_Tail);
    builder.CreateRet(call);
  }

  // name(args, num_args, stream) { return target(entry, args, num_args); } A CPU has no streams.
  void ExportCall(const Entry& entry, llvm::Constant* row, llvm::Function* target) {
    llvm::IRBuilder<> builder =
        Export(entry.symbol, llvm::FunctionType::get(i32_, {pointer_, i32_, pointer_}, false));
    llvm::Function* function = builder.GetInsertBlock()->getParent();
    llvm::CallInst* call = builder.CreateCall(target, {row, function->getArg(0), function->getArg(1)});
    call->setTailCallKind(llvm::CallInst::TCK_Tail);
    builder.CreateRet(call);
  }

  llvm::Module* module_;
  llvm::LLVMContext& context_;
  const LibrarySpec& spec_;
  llvm::PointerType* pointer_;
  llvm::Type* i32_;
  llvm::Type* i64_;
};

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

absl::StatusOr<std::string> EmitGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                     const std::string& json) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<llvm::TargetMachine> machine, BaselineMachine());
  llvm::LLVMContext context;
  llvm::Module module("glue", context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  MYCC_RETURN_IF_ERROR(GlueBuilder(&module, spec).Build(entries, json));

  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("LLVM: the x86-64 back end writes no object files");
  }
  passes.run(module);
  return object.str().str();
}

}  // namespace mycc
