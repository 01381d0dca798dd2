//! Scripts as they are written: expressions, patterns, definitions and declarations.

use crate::builtin::Builtin;
use crate::error::{Place, ScriptError};
use crate::refine::Model;
use rustc_hash::FxHashMap;

/// A name of the script, by its place in [`Program::symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub u32);

/// A definition, at the top or within a `let`, or a function without a name, by its place in [`Program::definitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionId(pub u32);

#[derive(Clone, Debug)]
pub struct Expression {
    pub place: Place,
    /// Expressions below it, within each other.
    pub height: u16,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Concatenate,
    External,
    Internal,
    Sliding,
    Interrupt,
    Sequence,
    Interleave,
}

impl Operator {
    pub const fn is_of_processes(self) -> bool {
        matches!(self, Self::External | Self::Internal | Self::Sliding | Self::Interrupt | Self::Sequence | Self::Interleave)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Negate,
    Not,
    Length,
}

/// What braces or brackets make of their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Set,
    Sequence,
    /// Everything that completes the elements: `{| |}`.
    Productions,
}

#[derive(Clone, Debug)]
pub enum Items {
    Listed(Vec<Expression>),
    /// Without an end: of infinitely many.
    Range(Box<Expression>, Option<Box<Expression>>),
}

#[derive(Clone, Debug)]
pub enum Qualifier {
    Each(Pattern, Expression),
    Condition(Expression),
}

#[derive(Clone, Debug)]
pub enum Kind {
    Number(i64),
    Name(Symbol),
    /// `_`, only as a pattern.
    Anything,
    /// `x@@y`, only as a pattern.
    Both(Box<[Expression; 2]>),
    Apply(Box<Expression>, Vec<Expression>),
    Tuple(Vec<Expression>),
    Collection(Shape, Items, Vec<Qualifier>),
    Dot(Vec<Expression>),
    Unary(Unary, Box<Expression>),
    Binary(Operator, Box<[Expression; 2]>),
    If(Box<[Expression; 3]>),
    Let(Vec<DefinitionId>, Box<Expression>),
    Lambda(DefinitionId),
    Stop,
    Skip,
    Prefix(Box<Prefix>),
    Guard(Box<[Expression; 2]>),
    /// Left, common events, right.
    Parallel(Box<[Expression; 3]>),
    /// Left, its events, events of the right, right.
    Alphabetised(Box<[Expression; 4]>),
    Hide(Box<[Expression; 2]>),
    Rename(Box<Expression>, Vec<[Expression; 2]>, Vec<Qualifier>),
    Replicated(Replicated, Vec<Qualifier>, Box<Expression>),
}

#[derive(Clone, Debug)]
pub enum Replicated {
    With(Operator),
    /// All take part in events of the set.
    Sharing(Box<Expression>),
    /// Each with its alphabet.
    Alphabets(Box<Expression>),
}

#[derive(Clone, Debug)]
pub struct Prefix {
    pub event: Expression,
    pub fields: Vec<Field>,
    pub then: Expression,
}

#[derive(Clone, Debug)]
pub enum Field {
    Output(Expression),
    /// `?`, from a set.
    Input(Pattern, Option<Expression>),
    /// `$`, chosen by the process.
    Choice(Pattern, Option<Expression>),
}

#[derive(Clone, Debug)]
pub struct Pattern {
    pub place: Place,
    pub kind: PatternKind,
}

#[derive(Clone, Debug)]
pub enum PatternKind {
    Anything,
    Number(i64),
    /// A variable, a constructor or a channel.
    Name(Symbol),
    Tuple(Vec<Pattern>),
    /// First ones, whether anything may be in the middle and what it is called, last ones.
    Sequence(Vec<Pattern>, Option<Box<Pattern>>, Vec<Pattern>),
    /// Of at most one element.
    Set(Option<Box<Pattern>>),
    Dot(Vec<Pattern>),
    Both(Box<[Pattern; 2]>),
}

#[derive(Clone, Debug)]
pub struct Clause {
    pub patterns: Vec<Pattern>,
    pub body: Expression,
}

#[derive(Clone, Debug)]
pub struct Definition {
    pub symbol: Symbol,
    pub place: Place,
    pub parameters: usize,
    pub clauses: Vec<Clause>,
    /// Definitions of the same `let`, this one among them.
    pub group: Vec<DefinitionId>,
    /// Names from around the `let`.
    pub free: Vec<Symbol>,
    /// It stands for processes, so that its body is looked at only where one is run.
    pub is_process: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    Definition(DefinitionId),
    Channel(u32),
    Constructor(u32),
    Type(u32),
    /// `transparent` functions compress what a process is, and not what it does.
    Transparent,
    Builtin(Builtin),
}

#[derive(Clone, Debug)]
pub struct Channel {
    pub symbol: Symbol,
    pub place: Place,
    pub fields: Vec<Expression>,
}

#[derive(Clone, Debug)]
pub struct TypeDeclaration {
    pub place: Place,
    pub is: TypeBody,
}

#[derive(Clone, Debug)]
pub enum TypeBody {
    Name(Expression),
    /// Constructors and what they are made of.
    Data(Vec<(Symbol, Place, Vec<Expression>)>),
}

#[derive(Clone, Debug)]
pub enum Asked {
    /// The second process is the implementation.
    Refines(Model, Box<Expression>),
    DeadlockFree,
    DivergenceFree,
    Free,
    /// In the stable-failures or the failures-divergences model.
    Deterministic(Model),
}

#[derive(Clone, Debug)]
pub struct Asserted {
    pub place: Place,
    pub text: String,
    pub negated: bool,
    pub process: Expression,
    pub asked: Asked,
}

/// A whole script.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub files: Vec<String>,
    pub symbols: Vec<String>,
    pub definitions: Vec<Definition>,
    pub globals: FxHashMap<Symbol, Global>,
    pub channels: Vec<Channel>,
    pub constructors: Vec<Symbol>,
    pub types: Vec<TypeDeclaration>,
}

impl Program {
    pub fn name(&self, symbol: Symbol) -> &str {
        &self.symbols[symbol.0 as usize]
    }

    pub fn definition(&self, id: DefinitionId) -> &Definition {
        &self.definitions[id.0 as usize]
    }

    pub fn error(&self, place: Place, expected: &str, found: String) -> ScriptError {
        let file = usize::from(place.file).checked_sub(1).and_then(|file| self.files.get(file)).cloned();
        ScriptError { file, place, expected: expected.to_owned(), found }
    }
}
