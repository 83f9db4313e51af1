// Empty initializers for LLVM's targets other than x86. lld calls the initializers of all targets by name,
// for link-time optimization. mycc links only x86 objects, so the other targets are not linked into the
// program.
#define MYCC_TARGET_IS_X86 ~, OWN
#define MYCC_SECOND(first, second, ...) second
#define MYCC_CHOOSE(...) MYCC_SECOND(__VA_ARGS__)
#define MYCC_JOIN(a, b) MYCC_JOIN_EXPANDED(a, b)
#define MYCC_JOIN_EXPANDED(a, b) a##b
// MYCC_EMPTY(AVR, Target) is `extern "C" void LLVMInitializeAVRTarget() {}`, and nothing for X86.
#define MYCC_EMPTY(name, what) \
  MYCC_JOIN(MYCC_EMPTY_, MYCC_CHOOSE(MYCC_TARGET_IS_##name, OTHER))(LLVMInitialize##name##what)
#define MYCC_EMPTY_OTHER(function) \
  extern "C" void function() {}
#define MYCC_EMPTY_OWN(function)

#define LLVM_TARGET(name)      \
  MYCC_EMPTY(name, TargetInfo) \
  MYCC_EMPTY(name, Target)     \
  MYCC_EMPTY(name, TargetMC)
#include "llvm/Config/Targets.def"
#define LLVM_ASM_PRINTER(name) MYCC_EMPTY(name, AsmPrinter)
#include "llvm/Config/AsmPrinters.def"
#define LLVM_ASM_PARSER(name) MYCC_EMPTY(name, AsmParser)
#include "llvm/Config/AsmParsers.def"
