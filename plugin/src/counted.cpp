// Counted loops. An innermost loop whose number of iterations is known before it runs, whose body has one way, and whose accesses
// have addresses that grow by constants, gets a second version, without hooks. The runtime is asked in front of it
// (`__rashomon_counted`): if it tells the whole loop with one record, the second version runs, and the compiler may do with it
// what it likes; else the first one does, as it was. What one iteration tells is a plan in the program, of which the words are
// those of records.
//
// Calls of the runtime in a loop that has two versions take their site from a call in front of both: an access has one site,
// whoever tells it.
//
// A load whose address and value do not change in the loop may be executed once in the second version, in front of it: if it is
// executed in each iteration, and no store of the loop writes there. The plan tells it in each iteration all the same.
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/Loads.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
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

// Of a hook by its name: the word of a plan for an access at base `Base` that grows by `Stride`; 0: it is no such access.
extern "C" uint64_t rashomon_counted_access(const char *Name, size_t Length, uint64_t Base, int64_t Stride);
extern "C" uint64_t rashomon_counted_segment(uint64_t Number);
extern "C" uint64_t rashomon_counted_most_operations();
extern "C" uint64_t rashomon_counted_most_bases();

namespace {

constexpr const char *Segment = "__rashomon_segment";

bool isAccessHook(const CallInst &Call) {
  const Function *Callee = Call.getCalledFunction();
  return Callee && rashomon_counted_access(Callee->getName().data(), Callee->getName().size(), 0, 0) != 0;
}

bool isSegment(const CallInst &Call) {
  const Function *Callee = Call.getCalledFunction();
  return Callee && Callee->getName() == Segment && isa<ConstantInt>(Call.getArgOperand(0));
}

class Versioner {
  Function &F;
  DominatorTree &DT;
  LoopInfo &LI;
  ScalarEvolution &SE;
  AAResults &AA;
  AssumptionCache &AC;
  const DataLayout &DL;

  // Blocks of the loop in the order in which each iteration passes them; none if there are several ways.
  static SmallVector<BasicBlock *, 8> onlyWay(const Loop &L) {
    SmallVector<BasicBlock *, 8> Way;
    BasicBlock *At = L.getHeader();
    do {
      Way.push_back(At);
      BasicBlock *Next = nullptr;
      auto *End = dyn_cast<BranchInst>(At->getTerminator());
      if (!End)
        return {};
      for (BasicBlock *To : End->successors()) {
        if (!L.contains(To))
          continue;
        if (Next)
          return {};
        Next = To;
      }
      At = Next;
    } while (At && At != L.getHeader() && Way.size() <= L.getNumBlocks());
    if (At != L.getHeader() || Way.size() != L.getNumBlocks())
      return {};
    return Way;
  }

  static bool isPlain(const Instruction &I) {
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

  // Whether the loop's form permits it; what its numbers are is seen in its second version.
  bool isCandidate(Loop &L) {
    if (!L.isLoopSimplifyForm() || !L.getExitingBlock() || !L.getExitBlock() || !L.isSafeToClone())
      return false;
    if (!isa<BranchInst>(L.getExitingBlock()->getTerminator()) || !isa<BranchInst>(L.getLoopPreheader()->getTerminator()))
      return false;
    size_t Accesses = 0, Operations = 0;
    for (BasicBlock *Block : L.blocks())
      for (Instruction &I : *Block) {
        if (!isPlain(I))
          return false;
        if (auto *Call = dyn_cast<CallInst>(&I)) {
          Accesses += isAccessHook(*Call);
          Operations += isAccessHook(*Call) || isSegment(*Call);
        }
      }
    return Accesses > 0 && Operations <= rashomon_counted_most_operations() && !onlyWay(L).empty();
  }

  // The values of loads that do not change are loaded in front of the loop: of those that each entry of the loop executes at
  // `Entry`, of the others at `Iterated`, which is executed if there is an iteration.
  void hoistLoads(Loop &L, ArrayRef<BasicBlock *> Way, Instruction *Entry, Instruction *Iterated) {
    SmallVector<StoreInst *, 8> Stores;
    for (BasicBlock *Block : Way)
      for (Instruction &I : *Block)
        if (auto *Store = dyn_cast<StoreInst>(&I))
          Stores.push_back(Store);
    Instruction *At = Entry;
    for (BasicBlock *Block : Way) {
      for (Instruction &I : make_early_inc_range(*Block)) {
        auto *Load = dyn_cast<LoadInst>(&I);
        if (!Load)
          continue;
        bool Changed = false;
        MemoryLocation Where = MemoryLocation::get(Load);
        auto Writes = [&](StoreInst *Store) { return AA.alias(Where, MemoryLocation::get(Store)) != AliasResult::NoAlias; };
        if (any_of(Stores, Writes) || !L.makeLoopInvariant(Load->getPointerOperand(), Changed, At, nullptr, &SE))
          continue;
        SE.forgetValue(Load);
        Load->moveBefore(At);
      }
      if (Block == L.getExitingBlock())
        At = Iterated;
    }
  }

public:
  Versioner(Function &F, FunctionAnalysisManager &FAM)
      : F(F), DT(FAM.getResult<DominatorTreeAnalysis>(F)), LI(FAM.getResult<LoopAnalysis>(F)),
        SE(FAM.getResult<ScalarEvolutionAnalysis>(F)), AA(FAM.getResult<AAManager>(F)),
        AC(FAM.getResult<AssumptionAnalysis>(F)), DL(F.getDataLayout()) {}

  bool run() {
    bool Changed = false;
    for (Loop *L : LI.getLoopsInPreorder()) {
      if (!L->isInnermost())
        continue;
      Changed |= simplifyLoop(L, &DT, &LI, &SE, &AC, nullptr, false);
      if (isCandidate(*L)) {
        version(*L);
        Changed = true;
      }
    }
    return Changed;
  }

private:
  struct Operation {
    CallInst *Hook;
    // Of a segment.
    uint64_t Word;
    // Of the hook of an access: in the first version, and its address in the first iteration and what it grows by.
    CallInst *First;
    const SCEV *Start;
    int64_t Stride;
  };

  void version(Loop &L) {
    formLCSSA(L, DT, &LI, &SE);
    BasicBlock *Entry = L.getLoopPreheader(), *Exiting = L.getExitingBlock(), *Exit = L.getExitBlock();
    BasicBlock *First = SplitEdge(Entry, L.getHeader(), &DT, &LI);
    ValueToValueMapTy Map;
    SmallVector<BasicBlock *, 8> Blocks;
    Loop *Second = cloneLoopWithPreheader(First, Entry, &L, Map, ".counted", &LI, &DT, Blocks);
    remapInstructionsInBlocks(Blocks, Map);
    for (PHINode &Phi : Exit->phis()) {
      Value *Value = Phi.getIncomingValueForBlock(Exiting);
      auto Found = Map.find(Value);
      Phi.addIncoming(Found == Map.end() ? Value : static_cast<llvm::Value *>(Found->second), cast<BasicBlock>(Map[Exiting]));
    }
    // Entry → Iterated | None, Iterated → second version | Sites, Sites → second | first version, None → first version.
    // What is computed in Iterated, where there is an iteration, can be used in all of the second version.
    LLVMContext &Context = F.getContext();
    auto *Preheader = cast<BasicBlock>(Map[First]);
    BasicBlock *Iterated = BasicBlock::Create(Context, "counted", &F, First);
    BasicBlock *Sites = BasicBlock::Create(Context, "sites", &F, First), *None = BasicBlock::Create(Context, "none", &F, First);
    // Nothing follows from it, unlike from a constant: what it leads to is analysed.
    auto *Never = new FreezeInst(PoisonValue::get(Type::getInt1Ty(Context)), "", Entry->getTerminator()->getIterator());
    ReplaceInstWithInst(Entry->getTerminator(), BranchInst::Create(Iterated, None, Never));
    BranchInst::Create(Preheader, Sites, Never, Iterated);
    BranchInst::Create(Preheader, First, Never, Sites);
    BranchInst::Create(First, None);
    if (Loop *Parent = L.getParentLoop())
      for (BasicBlock *Block : {Iterated, Sites, None})
        Parent->addBasicBlockToLoop(Block, LI);
    DT.recalculate(F);
    SE.forgetLoop(&L);

    SmallVector<BasicBlock *, 8> Way = onlyWay(*Second);
    hoistLoads(*Second, Way, Entry->getTerminator(), Iterated->getTerminator());
    complete(L, *Second, Map, {Entry, Iterated, Sites, None, First});
    Never->replaceAllUsesWith(ConstantInt::getFalse(Context));
    Never->eraseFromParent();
  }

  // Blocks in front of the two versions.
  struct Front {
    BasicBlock *Entry, *Iterated, *Sites, *None, *First;
  };

  void complete(Loop &L, Loop &Second, ValueToValueMapTy &Map, Front Blocks) {
    auto [Entry, Iterated, Sites, None, First] = Blocks;
    const SCEV *Count = SE.getBackedgeTakenCount(&Second);
    IntegerType *Word = Type::getInt64Ty(F.getContext());
    SCEVExpander Expander(SE, DL, "counted");
    bool Fits = !isa<SCEVCouldNotCompute>(Count) && SE.getTypeSizeInBits(Count->getType()) <= 64 &&
                Expander.isSafeToExpandAt(Count, Entry->getTerminator());
    SmallVector<Operation, 16> Operations;
    size_t Once = 0;
    // In the order of the first version, of which the second is a copy.
    for (BasicBlock *Block : onlyWay(L)) {
      for (Instruction &I : *Block) {
        auto *Hook = dyn_cast<CallInst>(&I);
        if (!Hook || !(isAccessHook(*Hook) || isSegment(*Hook)))
          continue;
        auto *Copy = cast<CallInst>(Map[Hook]);
        if (isSegment(*Hook)) {
          uint64_t Number = cast<ConstantInt>(Hook->getArgOperand(0))->getZExtValue();
          Operations.push_back({Copy, rashomon_counted_segment(Number), nullptr, nullptr, 0});
        } else {
          const SCEV *Start = SE.getSCEV(Copy->getArgOperand(0));
          int64_t Stride = 0;
          if (auto *Grows = dyn_cast<SCEVAddRecExpr>(Start); Grows && Grows->getLoop() == &Second && Grows->isAffine()) {
            auto *Step = dyn_cast<SCEVConstant>(Grows->getStepRecurrence(SE));
            Fits &= Step && Step->getAPInt().getSignificantBits() <= 32;
            Stride = Step && Fits ? Step->getAPInt().getSExtValue() : 0;
            Start = Grows->getStart();
          }
          Fits &= SE.isLoopInvariant(Start, &Second) && Expander.isSafeToExpandAt(Start, Iterated->getTerminator());
          Operations.push_back({Copy, 0, Hook, Start, Stride});
        }
      }
      if (Block == L.getExitingBlock())
        Once = Operations.size();
    }
    // Addresses of variables are told with the plan, the others each time.
    SmallVector<const SCEV *, 8> Bases;
    size_t Fixed = 0;
    for (bool IsFixed : {true, false}) {
      for (Operation &One : Operations) {
        auto *Known = dyn_cast_or_null<SCEVUnknown>(One.Start);
        if (!One.First || (Known && isa<Constant>(Known->getValue())) != IsFixed)
          continue;
        size_t Base = std::find(Bases.begin(), Bases.end(), One.Start) - Bases.begin();
        if (Base == Bases.size())
          Bases.push_back(One.Start);
        StringRef Name = One.First->getCalledFunction()->getName();
        One.Word = rashomon_counted_access(Name.data(), Name.size(), Base, One.Stride);
      }
      Fixed = IsFixed ? Bases.size() : Fixed;
    }
    DebugLoc At = Operations.front().Hook->getDebugLoc();
    for (Operation &One : Operations)
      if (One.First && One.First->getDebugLoc())
        At = One.First->getDebugLoc();
    for (Operation &One : Operations)
      One.Hook->eraseFromParent();
    if (!Fits || Bases.size() > rashomon_counted_most_bases())
      return;

    IRBuilder<> Builder(Entry->getTerminator());
    Builder.SetCurrentDebugLocation(At);
    Value *Iterations = Expander.expandCodeFor(Count, Count->getType(), Entry->getTerminator());
    Builder.SetInsertPoint(Entry->getTerminator());
    Iterations = Builder.CreateZExtOrTrunc(Iterations, Word);
    setCondition(Entry, Builder.CreateICmpNE(Iterations, ConstantInt::get(Word, 0)));

    SmallVector<Value *, 8> Addresses;
    for (const SCEV *Base : Bases)
      Addresses.push_back(Expander.expandCodeFor(Base, Base->getType(), Iterated->getTerminator()));
    Value *Table = arrayOf(Addresses, Iterated, Builder);
    Constant *Plan = planOf(Operations, Once, Bases.size(), Fixed);
    Type *Pointer = PointerType::getUnqual(F.getContext());
    Value *Told = call(Builder, "__rashomon_counted", Word, {Pointer, Word, Pointer}, {Plan, Iterations, Table});
    setCondition(Iterated, Builder.CreateICmpEQ(Told, ConstantInt::get(Word, 1)));

    SmallVector<Value *, 16> All;
    for (auto [Number, One] : enumerate(Operations)) {
      if (!One.First)
        continue;
      Builder.SetCurrentDebugLocation(One.First->getDebugLoc() ? One.First->getDebugLoc() : At);
      Builder.SetInsertPoint(Sites->getTerminator());
      All.push_back(call(Builder, "__rashomon_site", Word, {}, {}));
      // Without an iteration only what comes before the exit is executed.
      Builder.SetInsertPoint(None->getTerminator());
      Value *Other = Number < Once ? static_cast<Value *>(call(Builder, "__rashomon_site", Word, {}, {})) : Builder.getInt64(0);
      PHINode *Site = PHINode::Create(Word, 2, "", First->begin());
      Site->addIncoming(All.back(), Sites);
      Site->addIncoming(Other, None);
      replaceHook(One.First, Site);
    }
    Builder.SetCurrentDebugLocation(At);
    Value *Places = arrayOf(All, Sites, Builder);
    Value *Defined = call(Builder, "__rashomon_counted_defined", Word, {Pointer, Word, Pointer, Pointer, Word},
                          {Plan, Iterations, Table, Places, Told});
    setCondition(Sites, Builder.CreateICmpEQ(Defined, ConstantInt::get(Word, 1)));
  }

  static void setCondition(BasicBlock *Block, Value *Condition) {
    cast<BranchInst>(Block->getTerminator())->setCondition(Condition);
  }

  // An array in the frame, filled in at the end of a block.
  Value *arrayOf(ArrayRef<Value *> Values, BasicBlock *Block, IRBuilder<> &Builder) {
    IntegerType *Word = Type::getInt64Ty(F.getContext());
    auto *Array = new AllocaInst(ArrayType::get(Word, Values.size()), 0, "", F.getEntryBlock().begin());
    Builder.SetInsertPoint(Block->getTerminator());
    for (auto [Number, Value] : enumerate(Values)) {
      llvm::Value *Bits = Value->getType()->isPointerTy() ? Builder.CreatePtrToInt(Value, Word) : Value;
      Builder.CreateStore(Bits, Builder.CreateConstInBoundsGEP1_64(Word, Array, Number));
    }
    return Array;
  }

  // Of what comes before the exit, and of all: operations, and accesses in the upper half. Bases, and in the upper half how many
  // of these, the first ones, are told with the plan. The operations.
  Constant *planOf(ArrayRef<Operation> Operations, size_t Once, size_t Bases, size_t Fixed) {
    auto Accesses = [&](size_t Until) {
      return count_if(Operations.take_front(Until), [](const Operation &One) { return One.First != nullptr; });
    };
    auto Counts = [&](size_t Until) { return uint64_t(Accesses(Until)) << 32 | Until; };
    SmallVector<uint64_t, 32> Words = {Counts(Once), Counts(Operations.size()), Fixed << 32 | Bases};
    for (const Operation &One : Operations)
      Words.push_back(One.Word);
    Constant *Bytes = ConstantDataArray::get(F.getContext(), ArrayRef<uint64_t>(Words));
    auto *Plan = new GlobalVariable(*F.getParent(), Bytes->getType(), true, GlobalValue::PrivateLinkage, Bytes,
                                    "__rashomon_counted_plan");
    Plan->setComdat(F.getComdat());
    return Plan;
  }

  CallInst *call(IRBuilder<> &Builder, StringRef Name, Type *Result, ArrayRef<Type *> Types, ArrayRef<Value *> Arguments) {
    FunctionCallee Callee = F.getParent()->getOrInsertFunction(Name, FunctionType::get(Result, Types, false));
    if (auto *Declared = dyn_cast<Function>(Callee.getCallee())) {
      Declared->addFnAttr(Attribute::NoUnwind);
      for (unsigned Number = 0; Number < Types.size(); Number++)
        if (Types[Number]->isPointerTy())
          Declared->addParamAttr(Number, Attribute::NoCapture);
    }
    return Builder.CreateCall(Callee, Arguments);
  }

  // The hook of the same name that is given the site.
  void replaceHook(CallInst *Hook, Value *Site) {
    IRBuilder<> Builder(Hook);
    StringRef Name = Hook->getCalledFunction()->getName();
    Name.consume_front("__tsan_");
    Name.consume_front("unaligned_");
    Value *Address = Hook->getArgOperand(0);
    CallInst *New = call(Builder, ("__rashomon_" + Name + "_at").str(), Builder.getVoidTy(),
                         {Address->getType(), Site->getType()}, {Address, Site});
    New->getCalledFunction()->addParamAttr(0, Attribute::ReadNone);
    Hook->eraseFromParent();
  }
};

} // namespace

// Second versions for the counted loops of a function whose hooks are in place; 1 if anything was changed.
bool versionCountedLoops(Function &F, FunctionAnalysisManager &FAM) {
  if (F.hasOptNone())
    return false;
  FAM.invalidate(F, PreservedAnalyses::none());
  bool Changed = Versioner(F, FAM).run();
  FAM.invalidate(F, PreservedAnalyses::none());
  return Changed;
}
