// What counted loops are made of: hooks, and what is known of them.
#pragma once

#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/Loads.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

// Words of plans. Of an access; 0: the name is no hook of an access.
extern "C" uint64_t rashomon_nest_access(const char *Name, size_t Length, uint64_t Value, uint64_t Loops);
extern "C" uint64_t rashomon_nest_segment(uint64_t Number);
extern "C" uint64_t rashomon_nest_begins(uint64_t Width, int Varies, uint64_t Words, uint64_t Value, uint64_t Loops);
extern "C" uint64_t rashomon_nest_exit();
extern "C" uint64_t rashomon_nest_end();
extern "C" uint64_t rashomon_nest_amount(int64_t Constant);
extern "C" uint64_t rashomon_nest_amount_of_value(uint64_t Value);
extern "C" uint64_t rashomon_nest_most_words();
extern "C" uint64_t rashomon_nest_most_values();
extern "C" uint64_t rashomon_nest_most_loops();

// Instructions of a nest: each loop is copied once for each loop around it.
constexpr size_t MostInstructions = 2000;
// Bits of an amount, with its sign.
constexpr unsigned AmountBits = 48;

constexpr const char *Segment = "__rashomon_segment";

inline bool isAccessHook(const CallInst &Call) {
  const Function *Callee = Call.getCalledFunction();
  return Callee && rashomon_nest_access(Callee->getName().data(), Callee->getName().size(), 0, 0) != 0;
}

// Whether the hook is given its site.
inline bool hasSite(const CallInst &Hook) { return Hook.arg_size() == 2; }

inline bool isSegment(const CallInst &Call) {
  const Function *Callee = Call.getCalledFunction();
  return Callee && Callee->getName() == Segment && isa<ConstantInt>(Call.getArgOperand(0));
}

inline bool isPlain(const Instruction &I) {
  if (auto *Load = dyn_cast<LoadInst>(&I))
    return Load->isSimple();
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return Store->isSimple();
  if (auto *Call = dyn_cast<CallInst>(&I))
    return isAccessHook(*Call) || isSegment(*Call) ||
           (!Call->isInlineAsm() && Call->getIntrinsicID() != Intrinsic::not_intrinsic && !Call->mayReadOrWriteMemory() &&
            Call->doesNotThrow() && !Call->isConvergent());
  return !I.mayReadOrWriteMemory() && !I.mayThrow();
}

// Whether nothing but loads and stores, and their hooks, knows the address: what goes through other pointers leaves it alone.
inline bool isKnownToNobody(const Value *Address) {
  return all_of(Address->users(), [&](const User *Of) {
    if (auto *Store = dyn_cast<StoreInst>(Of))
      return Store->getValueOperand() != Address;
    if (auto *Call = dyn_cast<CallInst>(Of))
      return isAccessHook(*Call);
    if (isa<GEPOperator>(Of))
      return isKnownToNobody(Of);
    return isa<LoadInst>(Of);
  });
}

using Variables = SmallPtrSet<const GlobalVariable *, 16>;

// Variables of the module of which nobody has the address.
inline Variables variablesKnownToNobody(const Module &M) {
  Variables All;
  for (const GlobalVariable &Variable : M.globals())
    if (Variable.hasLocalLinkage() && isKnownToNobody(&Variable))
      All.insert(&Variable);
  return All;
}

struct Analyses {
  Function &F;
  DominatorTree &DT;
  LoopInfo &LI;
  ScalarEvolution &SE;
  AAResults &AA;
  AssumptionCache &AC;
  const DataLayout &DL;
  // Of the module: those of which nobody has the address.
  const Variables &Unknown;

  Analyses(Function &F, FunctionAnalysisManager &FAM, const Variables &Unknown)
      : F(F), DT(FAM.getResult<DominatorTreeAnalysis>(F)), LI(FAM.getResult<LoopAnalysis>(F)),
        SE(FAM.getResult<ScalarEvolutionAnalysis>(F)), AA(FAM.getResult<AAManager>(F)),
        AC(FAM.getResult<AssumptionAnalysis>(F)), DL(F.getDataLayout()), Unknown(Unknown) {}
};

// A number that grows by the same amount with each iteration of a loop, for each of the loops around it.
struct Growing {
  const SCEV *Start = nullptr;
  SmallVector<const SCEV *, 4> Steps;
};

// A loop of a nest. Its parts are what each iteration passes, in that order: blocks of its own, and loops by their numbers.
struct Level {
  Loop *First = nullptr, *Second = nullptr;
  std::optional<size_t> Parent;
  SmallVector<std::pair<BasicBlock *, size_t>, 8> Parts;
  Growing Count;
  unsigned Width = 0;
};

inline bool hasForm(Loop &L) {
  return L.isLoopSimplifyForm() && L.getExitingBlock() && L.getExitBlock() && L.isSafeToClone() &&
         isa<BranchInst>(L.getExitingBlock()->getTerminator()) && isa<BranchInst>(L.getLoopPreheader()->getTerminator());
}

inline bool isVariable(const SCEV *Number) {
  auto *Known = dyn_cast<SCEVUnknown>(Number);
  return Known && isa<Constant>(Known->getValue());
}

inline void setCondition(BasicBlock *Block, Value *Condition) {
  cast<BranchInst>(Block->getTerminator())->setCondition(Condition);
}
