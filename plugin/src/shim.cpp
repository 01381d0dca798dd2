// What LLVM offers in C++ only: to register a pass, to split edges, and a few questions.
#include "nest.hpp"
#include "llvm-c/Core.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

extern "C" int rashomon_instrument(LLVMModuleRef module, int wait_loops_only);

// counted.cpp
bool versionCountedLoops(Function &F, FunctionAnalysisManager &FAM, const Variables &Unknown);

namespace {

cl::opt<bool> WaitLoopsOnly("rashomon-wait-loops-only",
                            cl::desc("Rashomon: tell of wait loops, and of no dependences"), cl::init(false));

struct RashomonPass : PassInfoMixin<RashomonPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    if (!rashomon_instrument(wrap(&M), WaitLoopsOnly))
      return PreservedAnalyses::all();
    if (!WaitLoopsOnly) {
      auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
      Variables Unknown = variablesKnownToNobody(M);
      for (Function &F : M)
        if (!F.isDeclaration() && F.hasFnAttribute(Attribute::SanitizeThread))
          versionCountedLoops(F, FAM, Unknown);
    }
    // Code that is not valid would be compiled to something all the same.
    std::string Wrong;
    raw_string_ostream Stream(Wrong);
    if (verifyModule(M, &Stream))
      report_fatal_error(Twine("rashomon: the instrumented module is not valid: ") + Wrong);
    return PreservedAnalyses::none();
  }
  // Also where functions are not to be optimised.
  static bool isRequired() { return true; }
};

void registerPasses(PassBuilder &Builder) {
  // Before loops are rotated and functions are inlined: what the source says can still be seen.
  Builder.registerPipelineEarlySimplificationEPCallback(
      [](ModulePassManager &Manager, OptimizationLevel) { Manager.addPass(RashomonPass()); });
  Builder.registerPipelineParsingCallback(
      [](StringRef Name, ModulePassManager &Manager, ArrayRef<PassBuilder::PipelineElement>) {
        if (Name != "rashomon")
          return false;
        Manager.addPass(RashomonPass());
        return true;
      });
}

} // namespace

extern "C" void rashomon_plugin_info(PassPluginLibraryInfo *Out) {
  *Out = {LLVM_PLUGIN_API_VERSION, "rashomon", "1", registerPasses};
}

// The instruction before which code of the edge to a block's successor can be put; null if there is no such place. Asked once
// for each edge: it may split it.
extern "C" LLVMValueRef rashomon_edge(LLVMBasicBlockRef From, unsigned Successor) {
  Instruction *End = unwrap(From)->getTerminator();
  if (isa<IndirectBrInst>(End) || isa<CallBrInst>(End))
    return nullptr;
  BasicBlock *To = End->getSuccessor(Successor);
  if (To->isEHPad())
    return nullptr;
  if (isa<BranchInst>(End) && End->getNumSuccessors() == 1)
    return wrap(End);
  if (!To->getSinglePredecessor() || isa<InvokeInst>(End) || isa<SwitchInst>(End)) {
    BasicBlock *Between = SplitCriticalEdge(End, Successor);
    if (!Between)
      Between = SplitEdge(unwrap(From), To);
    return Between ? wrap(Between->getTerminator()) : nullptr;
  }
  return wrap(&*To->getFirstInsertionPt());
}

extern "C" LLVMValueRef rashomon_first_insertion_point(LLVMBasicBlockRef Block) {
  auto At = unwrap(Block)->getFirstInsertionPt();
  return At == unwrap(Block)->end() ? nullptr : wrap(&*At);
}

extern "C" int rashomon_is_eh_pad(LLVMBasicBlockRef Block) { return unwrap(Block)->isEHPad(); }

extern "C" int rashomon_is_vtable_access(LLVMValueRef Access) {
  MDNode *Tag = unwrap<Instruction>(Access)->getMetadata(LLVMContext::MD_tbaa);
  return Tag && Tag->isTBAAVtableAccess();
}

// Whether the code of this module is what runs when the function is called.
extern "C" int rashomon_is_exact(LLVMValueRef Function) {
  auto *F = unwrap<llvm::Function>(Function);
  return F->hasExactDefinition() && (F->hasLocalLinkage() || F->isDSOLocal());
}

extern "C" int rashomon_accesses_memory(LLVMValueRef Call) { return !unwrap<CallBase>(Call)->doesNotAccessMemory(); }

extern "C" int rashomon_returns_twice(LLVMValueRef Call) { return unwrap<CallBase>(Call)->hasFnAttr(Attribute::ReturnsTwice); }

extern "C" int rashomon_must_tail(LLVMValueRef Call) {
  auto *Instance = dyn_cast<CallInst>(unwrap(Call));
  return Instance && Instance->isMustTailCall();
}

extern "C" int rashomon_is_coroutine(LLVMValueRef Function) {
  return unwrap<llvm::Function>(Function)->isPresplitCoroutine();
}

// Of a load, a store or a copied function's memory: bytes that the type's value takes in memory, 0 if that is not fixed.
extern "C" unsigned long long rashomon_store_size(LLVMModuleRef M, LLVMTypeRef Type) {
  TypeSize Size = unwrap(M)->getDataLayout().getTypeStoreSize(unwrap(Type));
  return Size.isScalable() ? 0 : Size.getFixedValue();
}
