// Counted loops. A loop whose number of iterations is known before it runs, whose body has one way, and whose accesses have
// addresses that grow by amounts that do not change, gets a second version, without hooks; loops in it may be such loops
// (`rashomon_abi::nest`). The runtime is asked in front of it (`__rashomon_counted`): if it tells the whole nest with one record,
// the second version runs, and the compiler may do with it what it likes; else the first one does, as it was, whose inner loops
// have second versions of their own. What the nest tells is a plan in the program, of which the words are those of records.
//
// Calls of the runtime in a loop that has two versions take their site from a call in front of both: an access has one site,
// whoever tells it.
//
// A load whose address and value do not change in the nest may be executed once in the second version, in front of it: if it is
// executed in any case, or may be, and no store of the nest writes there. The plan tells it in each iteration all the same.
#include "nest.hpp"

namespace {

class Nest : Analyses {
  // In preorder.
  SmallVector<Level, 4> Levels;
  ValueToValueMapTy Map;
  // Blocks in front of the two versions: `Entry`; behind a check that a loop iterates, one of `Chain` for each loop, the last of
  // which asks the runtime; `Sites`, if it asks for them, and `None`, if a check fails, lead to the first version.
  BasicBlock *Entry, *Sites, *None, *First;
  SmallVector<BasicBlock *, 4> Chain;
  // Loops that have to iterate, since what is loaded in them is loaded in front.
  SmallVector<bool, 4> Needed;
  // Of hooks in the first version, what their copies are given as the address. The copies are gone: a call that may do anything
  // hides when the loop ends.
  DenseMap<CallInst *, Value *> Addresses;
  // Of accesses, in the order of the first version: the hook, and its address in the second one.
  SmallVector<std::pair<CallInst *, Growing>, 16> Accesses;
  SmallVector<const SCEV *, 16> Values;
  SmallVector<uint64_t, 64> Words;
  // Those of the first ones that are addresses of variables are told with the plan, the others each time.
  size_t Fixed = 0;

  // Whether all iterations of the loop go one way, through what is plain and loops of the same kind.
  bool collect(Loop &L, std::optional<size_t> Parent, size_t Depth) {
    if (Depth == rashomon_nest_most_loops() || !hasForm(L))
      return false;
    size_t Own = Levels.size(), Passed = 0;
    Levels.emplace_back();
    Levels[Own].First = &L;
    Levels[Own].Parent = Parent;
    BasicBlock *At = L.getHeader();
    do {
      Loop *Of = LI.getLoopFor(At);
      if (Of != &L) {
        size_t Inner = Levels.size();
        if (!Of || Of->getParentLoop() != &L || Of->getHeader() != At || !collect(*Of, Own, Depth + 1))
          return false;
        Levels[Own].Parts.push_back({nullptr, Inner});
        Passed += Of->getNumBlocks();
        At = Of->getExitBlock();
        continue;
      }
      auto *End = dyn_cast<BranchInst>(At->getTerminator());
      if (!End || !all_of(*At, isPlain))
        return false;
      Levels[Own].Parts.push_back({At, 0});
      Passed++;
      BasicBlock *Next = nullptr;
      for (BasicBlock *To : End->successors()) {
        if (!L.contains(To))
          continue;
        if (Next)
          return false;
        Next = To;
      }
      At = Next;
    } while (At && At != L.getHeader() && Passed <= L.getNumBlocks());
    return At == L.getHeader() && Passed == L.getNumBlocks();
  }

  bool isExiting(const Level &Of, BasicBlock *Block) { return Of.First->getExitingBlock() == Block; }

  size_t depthOf(size_t Number) {
    size_t Depth = 0;
    for (auto At = Levels[Number].Parent; At; At = Levels[*At].Parent)
      Depth++;
    return Depth;
  }

  BasicBlock *place(size_t Number) { return Number == 0 ? Entry : Chain[Number - 1]; }

  // Copies the nest, and puts the blocks in front. Where they lead to is not known yet (`Never`): what follows from a constant
  // would be seen.
  Instruction *copy() {
    Loop &L = *Levels[0].First;
    formLCSSARecursively(L, DT, &LI, &SE);
    BasicBlock *Exiting = L.getExitingBlock(), *Exit = L.getExitBlock();
    Entry = L.getLoopPreheader();
    First = SplitEdge(Entry, L.getHeader(), &DT, &LI);
    SmallVector<BasicBlock *, 8> Blocks;
    cloneLoopWithPreheader(First, Entry, &L, Map, ".counted", &LI, &DT, Blocks);
    remapInstructionsInBlocks(Blocks, Map);
    for (Level &One : Levels)
      One.Second = LI.getLoopFor(cast<BasicBlock>(Map[One.First->getHeader()]));
    for (PHINode &Phi : Exit->phis()) {
      Value *Value = Phi.getIncomingValueForBlock(Exiting);
      auto Found = Map.find(Value);
      Phi.addIncoming(Found == Map.end() ? Value : static_cast<llvm::Value *>(Found->second), cast<BasicBlock>(Map[Exiting]));
      SE.forgetValue(&Phi);
    }
    LLVMContext &Context = F.getContext();
    auto *Second = cast<BasicBlock>(Map[First]);
    for (size_t Number = 0; Number < Levels.size(); Number++)
      Chain.push_back(BasicBlock::Create(Context, "counted", &F, First));
    Sites = BasicBlock::Create(Context, "sites", &F, First);
    None = BasicBlock::Create(Context, "none", &F, First);
    auto *Never = new FreezeInst(PoisonValue::get(Type::getInt1Ty(Context)), "", Entry->getTerminator()->getIterator());
    ReplaceInstWithInst(Entry->getTerminator(), BranchInst::Create(Chain[0], None, Never));
    for (size_t Number = 0; Number + 1 < Chain.size(); Number++)
      BranchInst::Create(Chain[Number + 1], None, Never, Chain[Number]);
    BranchInst::Create(Second, Sites, Never, Chain.back());
    BranchInst::Create(Second, First, Never, Sites);
    BranchInst::Create(First, None);
    if (Loop *Around = L.getParentLoop()) {
      for (BasicBlock *Block : Chain)
        Around->addBasicBlockToLoop(Block, LI);
      Around->addBasicBlockToLoop(Sites, LI);
      Around->addBasicBlockToLoop(None, LI);
    }
    DT.recalculate(F);
    SE.forgetTopmostLoop(&L);
    return Never;
  }

  bool mayChange(const LoadInst &Load, const StoreInst &Store) {
    const Value *Read = getUnderlyingObject(Load.getPointerOperand()), *Written = getUnderlyingObject(Store.getPointerOperand());
    auto *Variable = dyn_cast<GlobalVariable>(Read);
    if (Variable && Written != Read && Unknown.contains(Variable))
      return false;
    return AA.alias(MemoryLocation::get(&Load), MemoryLocation::get(&Store)) != AliasResult::NoAlias;
  }

  // Loads of a loop that do not change in the nest are made in front of it: not before the place of those in front of them, and
  // behind checks that the loops iterate that they are in (`Inside`: behind the exit), unless they may be made in any case.
  void hoistLoads(size_t Number, size_t &Place, SmallVectorImpl<size_t> &Inside, ArrayRef<StoreInst *> Stores) {
    Loop *Whole = Levels[0].Second;
    size_t Before = Inside.size();
    for (auto [Block, Inner] : Levels[Number].Parts) {
      if (!Block) {
        hoistLoads(Inner, Place, Inside, Stores);
        continue;
      }
      for (Instruction &I : make_early_inc_range(*cast<BasicBlock>(Map[Block]))) {
        auto *Load = dyn_cast<LoadInst>(&I);
        if (!Load)
          continue;
        if (any_of(Stores, [&](StoreInst *Store) { return mayChange(*Load, *Store); }))
          continue;
        Instruction *End = place(Place)->getTerminator();
        bool Changed = false, IsSafe = isSafeToLoadUnconditionally(Load->getPointerOperand(), Load->getType(),
                                                                   Load->getAlign(), DL, End, &AC, &DT);
        size_t At = IsSafe || Inside.empty() ? Place : std::max(Place, Inside.back() + 1);
        if (!Whole->makeLoopInvariant(Load->getPointerOperand(), Changed, place(At)->getTerminator(), nullptr, &SE)) {
          Place = Changed ? At : Place;
          continue;
        }
        for (size_t Loop : Inside)
          Needed[Loop] |= !IsSafe;
        Place = At;
        SE.forgetValue(Load);
        Load->moveBefore(place(Place)->getTerminator());
      }
      if (isExiting(Levels[Number], Block))
        Inside.push_back(Number);
    }
    Inside.truncate(Before);
  }

  // Of a number in a loop of the second version: what it begins with, and how it grows with the loops around.
  bool grows(const SCEV *Number, ArrayRef<Loop *> Around, Growing &Out) {
    Out.Steps.assign(Around.size(), SE.getZero(Type::getInt64Ty(F.getContext())));
    while (auto *Grows = dyn_cast<SCEVAddRecExpr>(Number)) {
      auto *Found = find(Around, Grows->getLoop());
      if (Found == Around.end())
        break;
      const SCEV *Step = Grows->getStepRecurrence(SE);
      if (!Grows->isAffine() || !SE.isLoopInvariant(Step, Levels[0].Second))
        return false;
      Out.Steps[Found - Around.begin()] = Step;
      Number = Grows->getStart();
    }
    Out.Start = Number;
    return SE.isLoopInvariant(Number, Levels[0].Second);
  }

  SmallVector<Loop *, 4> around(size_t Number) {
    SmallVector<Loop *, 4> Around;
    for (std::optional<size_t> At = Number; At; At = Levels[*At].Parent)
      Around.insert(Around.begin(), Levels[*At].Second);
    return Around;
  }

  // An address that is based on what would have to be divided for once more: on the value that it is.
  const SCEV *addressIn(Loop *In, Value *Address, SCEVExpander &Expander) {
    const SCEV *Number = SE.getSCEVAtScope(Address, In);
    while (!Levels[0].Second->isLoopInvariant(Address) && isa<GEPOperator>(Address))
      Address = cast<GEPOperator>(Address)->getPointerOperand();
    const SCEV *Base = SE.getSCEV(Address);
    if (!Levels[0].Second->isLoopInvariant(Address) || Expander.isSafeToExpandAt(Base, Chain.back()->getTerminator()))
      return Number;
    const SCEV *Distance = SE.getMinusSCEV(Number, Base);
    return isa<SCEVCouldNotCompute>(Distance) ? Number : SE.getAddExpr(SE.getUnknown(Address), Distance);
  }

  // What all numbers of iterations and addresses grow by; false: it is not known.
  bool measure(SCEVExpander &Expander) {
    for (auto [Number, One] : enumerate(Levels)) {
      SmallVector<Loop *, 4> Around = around(Number);
      const SCEV *Count = SE.getBackedgeTakenCount(One.Second);
      if (isa<SCEVCouldNotCompute>(Count) || SE.getTypeSizeInBits(Count->getType()) > 64)
        return false;
      One.Width = SE.getTypeSizeInBits(Count->getType());
      if (!grows(Count, ArrayRef(Around).drop_back(), One.Count))
        return false;
    }
    return measureAccesses(0, Expander);
  }

  bool measureAccesses(size_t Number, SCEVExpander &Expander) {
    SmallVector<Loop *, 4> Around = around(Number);
    for (auto [Block, Inner] : Levels[Number].Parts) {
      if (!Block) {
        if (!measureAccesses(Inner, Expander))
          return false;
        continue;
      }
      for (Instruction &I : *Block) {
        auto *Hook = dyn_cast<CallInst>(&I);
        if (!Hook || !isAccessHook(*Hook))
          continue;
        Growing Grows;
        if (!grows(addressIn(Levels[Number].Second, Addresses[Hook], Expander), Around, Grows))
          return false;
        Accesses.push_back({Hook, Grows});
      }
    }
    return true;
  }

  // Numbers that are not known when the program is compiled, those of variables first; false: they cannot be known in front of
  // the nest.
  bool value(SCEVExpander &Expander) {
    SmallVector<const SCEV *, 16> All;
    auto Add = [&](const Growing &One) {
      All.push_back(One.Start);
      copy_if(One.Steps, std::back_inserter(All), [](const SCEV *Step) { return !isa<SCEVConstant>(Step); });
    };
    for (auto &[Hook, Address] : Accesses)
      Add(Address);
    for (Level &One : Levels)
      Add(One.Count);
    for (bool IsFixed : {true, false}) {
      for (const SCEV *One : All)
        if (isVariable(One) == IsFixed && !is_contained(Values, One))
          Values.push_back(One);
      Fixed = IsFixed ? Values.size() : Fixed;
    }
    auto CanExpand = [&](const SCEV *One) { return Expander.isSafeToExpandAt(One, Chain.back()->getTerminator()); };
    for (auto [Number, One] : enumerate(Levels))
      if ((Number == 0 || Needed[Number]) && !Expander.isSafeToExpandAt(One.Count.Start, place(Number)->getTerminator()))
        return false;
    return Values.size() <= rashomon_nest_most_values() && all_of(Values, CanExpand);
  }

  size_t numberOf(const SCEV *Number) { return find(Values, Number) - Values.begin(); }

  bool addAmounts(const Growing &Of) {
    for (const SCEV *Step : Of.Steps) {
      auto *Constant = dyn_cast<SCEVConstant>(Step);
      if (Constant && Constant->getAPInt().getSignificantBits() >= AmountBits)
        return false;
      Words.push_back(Constant ? rashomon_nest_amount(Constant->getAPInt().getSExtValue())
                               : rashomon_nest_amount_of_value(numberOf(Step)));
    }
    return true;
  }

  // Whether a loop in it iterates more or less often with it.
  bool varies(size_t Number) {
    size_t Depth = depthOf(Number);
    return any_of(Levels, [&](Level &One) { return One.Count.Steps.size() > Depth && !One.Count.Steps[Depth]->isZero() &&
                                                   is_contained(around(&One - Levels.begin()), Levels[Number].Second); });
  }

  // The operations of a loop; `Next`: of accesses.
  bool addOperations(size_t Number, size_t &Next) {
    size_t Begin = Words.size();
    Level &One = Levels[Number];
    Words.push_back(0);
    if (!addAmounts(One.Count))
      return false;
    for (auto [Block, Inner] : One.Parts) {
      if (!Block) {
        if (!addOperations(Inner, Next))
          return false;
        continue;
      }
      for (Instruction &I : *Block) {
        auto *Hook = dyn_cast<CallInst>(&I);
        if (Hook && isSegment(*Hook))
          Words.push_back(rashomon_nest_segment(cast<ConstantInt>(Hook->getArgOperand(0))->getZExtValue()));
        if (!Hook || !isAccessHook(*Hook))
          continue;
        const Growing &Address = Accesses[Next++].second;
        StringRef Name = Hook->getCalledFunction()->getName();
        Words.push_back(rashomon_nest_access(Name.data(), Name.size(), numberOf(Address.Start), Address.Steps.size()));
        if (!addAmounts(Address))
          return false;
        Words.push_back(0);
      }
      if (isExiting(One, Block))
        Words.push_back(rashomon_nest_exit());
    }
    Words[Begin] = rashomon_nest_begins(One.Width, varies(Number), Words.size() - Begin, numberOf(One.Count.Start),
                                        One.Count.Steps.size());
    Words.push_back(rashomon_nest_end());
    return Words.size() <= rashomon_nest_most_words();
  }

  // An array in the frame, filled in at the end of a block.
  Value *arrayOf(ArrayRef<Value *> Values, BasicBlock *Block, IRBuilder<> &Builder) {
    IntegerType *Word = Type::getInt64Ty(F.getContext());
    auto *Array = new AllocaInst(ArrayType::get(Word, Values.size()), 0, "", F.getEntryBlock().begin());
    Builder.SetInsertPoint(Block->getTerminator());
    for (auto [Number, Value] : enumerate(Values)) {
      llvm::Value *Bits = Value->getType()->isPointerTy() ? Builder.CreatePtrToInt(Value, Word)
                                                          : Builder.CreateZExtOrTrunc(Value, Word);
      Builder.CreateStore(Bits, Builder.CreateConstInBoundsGEP1_64(Word, Array, Number));
    }
    return Array;
  }

  Constant *plan() {
    SmallVector<uint64_t, 64> All = {Fixed << 32 | Values.size(), Words.size()};
    All.append(Words);
    Constant *Bytes = ConstantDataArray::get(F.getContext(), ArrayRef<uint64_t>(All));
    // Not of the function's group: the function may be inlined into others.
    return new GlobalVariable(*F.getParent(), Bytes->getType(), true, GlobalValue::PrivateLinkage, Bytes,
                              "__rashomon_counted_plan");
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

  // The sites of all accesses, at the end of `Sites`.
  SmallVector<Value *, 16> sites(IRBuilder<> &Builder, DebugLoc At) {
    IntegerType *Word = Type::getInt64Ty(F.getContext());
    SmallVector<Value *, 16> All;
    for (auto &[Hook, Address] : Accesses) {
      if (hasSite(*Hook)) {
        All.push_back(Hook->getArgOperand(1));
        continue;
      }
      Builder.SetCurrentDebugLocation(Hook->getDebugLoc() ? Hook->getDebugLoc() : At);
      PHINode *Site = PHINode::Create(Word, 2, "", First->begin());
      for (BasicBlock *Block : {Sites, None}) {
        Builder.SetInsertPoint(Block->getTerminator());
        Site->addIncoming(call(Builder, "__rashomon_site", Word, {}, {}), Block);
      }
      All.push_back(Site->getIncomingValueForBlock(Sites));
      replaceHook(Hook, Site);
    }
    return All;
  }

  void complete(SCEVExpander &Expander) {
    IntegerType *Word = Type::getInt64Ty(F.getContext());
    Type *Pointer = PointerType::getUnqual(F.getContext());
    DebugLoc At;
    for (auto &[Hook, Address] : Accesses)
      At = Hook->getDebugLoc() ? Hook->getDebugLoc() : At;
    IRBuilder<> Builder(Entry->getTerminator());
    Builder.SetCurrentDebugLocation(At);
    for (size_t Number = 0; Number < Levels.size(); Number++) {
      Instruction *End = place(Number)->getTerminator();
      if (Number > 0 && !Needed[Number]) {
        setCondition(place(Number), Builder.getTrue());
        continue;
      }
      const SCEV *Count = Levels[Number].Count.Start;
      Value *Iterations = Expander.expandCodeFor(Count, Count->getType(), End);
      Builder.SetInsertPoint(End);
      setCondition(place(Number), Builder.CreateIsNotNull(Iterations));
    }
    SmallVector<Value *, 16> Known;
    for (const SCEV *One : Values)
      Known.push_back(Expander.expandCodeFor(One, One->getType(), Chain.back()->getTerminator()));
    Value *Table = arrayOf(Known, Chain.back(), Builder);
    Constant *Plan = plan();
    Value *Told = call(Builder, "__rashomon_counted", Word, {Pointer, Pointer}, {Plan, Table});
    setCondition(Chain.back(), Builder.CreateICmpEQ(Told, ConstantInt::get(Word, 1)));
    SmallVector<Value *, 16> All = sites(Builder, At);
    Builder.SetCurrentDebugLocation(At);
    Value *Places = arrayOf(All, Sites, Builder);
    Value *Defined =
        call(Builder, "__rashomon_counted_defined", Word, {Pointer, Pointer, Pointer, Word}, {Plan, Table, Places, Told});
    setCondition(Sites, Builder.CreateICmpEQ(Defined, ConstantInt::get(Word, 1)));
  }

public:
  explicit Nest(const Analyses &All) : Analyses(All) {}

  // Whether the form of the loop, and of loops in it, permits it; what its numbers are is seen in its second version.
  bool isCandidate(Loop &L) {
    if (!collect(L, std::nullopt, 0))
      return false;
    size_t Instructions = 0;
    bool HasAccess = false;
    for (BasicBlock *Block : L.blocks())
      for (Instruction &I : *Block) {
        Instructions++;
        auto *Call = dyn_cast<CallInst>(&I);
        HasAccess |= Call && isAccessHook(*Call);
      }
    return HasAccess && Instructions <= MostInstructions;
  }

  void version() {
    Instruction *Never = copy();
    SmallVector<StoreInst *, 8> Stores;
    for (BasicBlock *Block : Levels[0].First->blocks())
      for (Instruction &I : *Block) {
        if (auto *Store = dyn_cast<StoreInst>(&I))
          Stores.push_back(cast<StoreInst>(Map[Store]));
        auto *Hook = dyn_cast<CallInst>(&I);
        if (!Hook || !(isAccessHook(*Hook) || isSegment(*Hook)))
          continue;
        auto *Copy = cast<CallInst>(Map[Hook]);
        Addresses[Hook] = Copy->getArgOperand(0);
        Copy->eraseFromParent();
      }
    Needed.assign(Levels.size(), false);
    size_t Place = 0, Next = 0;
    SmallVector<size_t, 4> Inside;
    hoistLoads(0, Place, Inside, Stores);
    SCEVExpander Expander(SE, DL, "counted");
    bool Fits = measure(Expander) && value(Expander) && addOperations(0, Next);
    if (Fits)
      complete(Expander);
    Never->replaceAllUsesWith(ConstantInt::getFalse(F.getContext()));
    Never->eraseFromParent();
  }
};

// A loop, and those in it: what a record of all of it would be too much for is told by records of the inner ones.
bool visit(const Analyses &All, Loop *L) {
  bool Changed = simplifyLoop(L, &All.DT, &All.LI, &All.SE, &All.AC, nullptr, false);
  SmallVector<Loop *, 4> Inner(L->begin(), L->end());
  Nest Whole(All);
  if (Whole.isCandidate(*L)) {
    Whole.version();
    Changed = true;
  }
  for (Loop *One : Inner)
    Changed |= visit(All, One);
  return Changed;
}

} // namespace

// Second versions for the counted loops of a function whose hooks are in place; 1 if anything was changed.
bool versionCountedLoops(Function &F, FunctionAnalysisManager &FAM, const Variables &Unknown) {
  if (F.hasOptNone())
    return false;
  FAM.invalidate(F, PreservedAnalyses::none());
  bool Changed = false;
  Analyses All(F, FAM, Unknown);
  SmallVector<Loop *, 8> Outermost(All.LI.begin(), All.LI.end());
  for (Loop *L : Outermost)
    Changed |= visit(All, L);
  FAM.invalidate(F, PreservedAnalyses::none());
  return Changed;
}
