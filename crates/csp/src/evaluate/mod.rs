//! What expressions of scripts stand for: values, and terms of the algebra.
//!
//! Processes are evaluated up to the calls in them. A call with its arguments is an instance, a name of the algebra whose body is
//! made only where an exploration steps it; so recursion through calls needs no end, and what a guard excludes is never looked
//! at. All other recursion is bounded, and so is what all evaluations of a script do.

mod builtin;
mod collections;
mod declare;
mod matching;
mod operators;
mod prefix;
mod processes;
mod value;

pub use value::{Closure, Value, shown};

use crate::builtin::Builtin;
use crate::error::{Place, ScriptError};
use crate::syntax::{Asked, Asserted, DefinitionId, Expression, Global, Kind, Program, Symbol};
use crate::term::{Event, Name, Processes, Term, TermId, Unfold};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// Evaluations within each other.
const DEPTH: usize = 1000;
/// Evaluations while a script is read, and of one instance; elements of collections included.
const STEPS: u64 = 5_000_000;
/// Elements of a set or a sequence.
const ELEMENTS: usize = 100_000;
/// Events of all channels.
const EVENTS: usize = 100_000;
/// Instances of definitions.
const INSTANCES: usize = 1_000_000;
/// Values in the arguments of all instances.
const ARGUMENTS: usize = 5_000_000;
/// Operators of a term within each other.
const HEIGHT: usize = 1000;
/// Letters of the name of an instance.
const NAME: usize = 200;

/// Events and types.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// Per channel, the values of each field; `None` while types are being evaluated.
    pub fields: Option<Vec<Vec<Arc<BTreeSet<Value>>>>>,
    /// By what the events are called.
    pub events: FxHashMap<Value, Event>,
    /// By number.
    pub names: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instance {
    Call(Arc<Closure>, Arc<[Value]>),
    /// `CHAOS` or `RUN` of a set.
    Builtin(Builtin, Value),
}

impl Instance {
    fn size(&self) -> usize {
        match self {
            Self::Call(closure, arguments) => closure.captured.iter().chain(arguments.iter()).map(Value::size).sum(),
            Self::Builtin(_, of) => of.size(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Constant {
    Definition(Arc<Closure>),
    Type(u32),
}

/// What is known of a script while its processes are explored.
#[derive(Clone, Debug, Default)]
struct Unfolding {
    program: Arc<Program>,
    signature: Arc<Signature>,
    names: FxHashMap<Instance, Name>,
    pending: FxHashMap<Name, Instance>,
    /// `None`: being evaluated.
    constants: FxHashMap<Constant, Option<Value>>,
    heights: FxHashMap<TermId, usize>,
    steps: u64,
    arguments: usize,
}

impl Unfold for Unfolding {
    fn is_pending(&self, name: Name) -> bool {
        self.pending.contains_key(&name)
    }

    fn first_pending(&self) -> Option<Name> {
        self.pending.keys().min().copied()
    }

    fn unfold(&mut self, processes: &mut Processes, name: Name) -> Result<TermId, ScriptError> {
        let Some(instance) = self.pending.get(&name).cloned() else { return Ok(processes.body(name)) };
        let (program, signature) = (self.program.clone(), self.signature.clone());
        self.steps = 0;
        let mut evaluator = Evaluator { program: &program, signature: &signature, unfolding: self, processes, depth: 0 };
        let body = evaluator.body(&instance, name)?;
        processes.definitions[name.0 as usize].1 = body;
        self.pending.remove(&name);
        Ok(body)
    }

    fn cloned(&self) -> Box<dyn Unfold> {
        Box::new(self.clone())
    }
}

/// The process of an assertion, and the one that is to refine it, if there is one.
pub type Asserts = (TermId, Option<TermId>);

/// Events, all processes without parameters, and the processes of each assertion.
pub fn script(program: Program, asserted: &[Asserted]) -> Result<(Processes, Vec<Asserts>), ScriptError> {
    let mut processes = Processes::default();
    let mut unfolding = Unfolding::default();
    let signature = Arc::new(declare::signature(&program, &mut unfolding, &mut processes)?);
    let program = Arc::new(program);
    (unfolding.program, unfolding.signature) = (program.clone(), signature.clone());
    let mut evaluator =
        Evaluator { program: &program, signature: &signature, unfolding: &mut unfolding, processes: &mut processes, depth: 0 };
    let constant = |global: &Global| match *global {
        Global::Definition(id) if program.definition(id).parameters == 0 => Some(id),
        _ => None,
    };
    let constants: BTreeSet<DefinitionId> = program.globals.values().filter_map(constant).collect();
    for &id in &constants {
        let closure = Arc::new(Closure { definition: id, captured: Arc::new([]) });
        evaluator.constant(&closure, program.definition(id).place)?;
    }
    let mut claims = Vec::new();
    for one in asserted {
        let process = evaluator.process(&one.process, &None)?;
        let other = match &one.asked {
            Asked::Refines(_, other) => Some(evaluator.process(other, &None)?),
            _ => None,
        };
        claims.push((process, other));
    }
    // What is wrong in a definition is told at once, and not only where an exploration comes there.
    for name in (0..processes.definitions.len() as u32).map(Name) {
        if let Some(Instance::Call(closure, arguments)) = unfolding.pending.get(&name)
            && arguments.is_empty()
            && constants.contains(&closure.definition)
        {
            unfolding.unfold(&mut processes, name)?;
        }
    }
    processes.unfolding = Some(Box::new(unfolding));
    Ok((processes, claims))
}

/// What names are bound to, the last one first.
type Environment = Option<Rc<Frame>>;

struct Frame {
    symbol: Symbol,
    value: Value,
    around: Environment,
}

fn with(around: &Environment, symbol: Symbol, value: Value) -> Environment {
    Some(Rc::new(Frame { symbol, value, around: around.clone() }))
}

fn find(mut environment: &Environment, symbol: Symbol) -> Option<&Value> {
    while let Some(frame) = environment {
        if frame.symbol == symbol {
            return Some(&frame.value);
        }
        environment = &frame.around;
    }
    None
}

struct Evaluator<'e> {
    program: &'e Program,
    signature: &'e Signature,
    unfolding: &'e mut Unfolding,
    processes: &'e mut Processes,
    depth: usize,
}

type Found<T> = Result<T, ScriptError>;

impl<'e> Evaluator<'e> {
    fn wrong<T>(&self, place: Place, expected: &str, found: &Value) -> Found<T> {
        let shown = shown(self.program, found);
        let found = if matches!(found, Value::Process(_)) { String::from("a process") } else { format!("`{shown}`") };
        Err(self.program.error(place, expected, found))
    }

    fn too_much<T>(&self, place: Place, expected: &str) -> Found<T> {
        Err(self.program.error(place, expected, String::from("more")))
    }

    fn step(&mut self, place: Place) -> Found<()> {
        self.unfolding.steps += 1;
        if self.unfolding.steps > STEPS {
            return self.too_much(place, &format!("at most {STEPS} evaluations in all"));
        }
        Ok(())
    }

    fn evaluate(&mut self, expression: &'e Expression, environment: &Environment) -> Found<Value> {
        self.step(expression.place)?;
        self.depth += 1;
        if self.depth > DEPTH {
            return self.too_much(expression.place, &format!("at most {DEPTH} evaluations within each other"));
        }
        let value = match &expression.kind {
            Kind::Number(number) => Ok(Value::Number(*number)),
            Kind::Name(symbol) => self.name(*symbol, expression.place, environment),
            Kind::Anything | Kind::Both(_) => Err(self.program.error(expression.place, "a value", String::from("a pattern"))),
            Kind::Apply(function, arguments) => self.apply(expression.place, function, arguments, environment),
            Kind::Tuple(all) => Ok(Value::tuple(self.all(all, environment)?)),
            Kind::Collection(shape, items, qualifiers) => {
                self.collection(expression.place, *shape, items, qualifiers, environment)
            }
            Kind::Dot(all) => self.dot(all, environment),
            Kind::Unary(operator, inner) => self.unary(*operator, inner, environment),
            Kind::Binary(operator, sides) if !operator.is_of_processes() => self.binary(*operator, sides, environment),
            Kind::If(parts) => {
                let way = if self.truth(&parts[0], environment)? { &parts[1] } else { &parts[2] };
                self.evaluate(way, environment)
            }
            Kind::Let(group, within) => {
                let inner = self.group(group, environment);
                self.evaluate(within, &inner)
            }
            Kind::Lambda(id) => Ok(Value::Function(self.closure(*id, environment))),
            _ => self.term(expression, environment).map(Value::Process),
        };
        self.depth -= 1;
        value
    }

    fn all(&mut self, all: &'e [Expression], environment: &Environment) -> Found<Vec<Value>> {
        all.iter().map(|one| self.evaluate(one, environment)).collect()
    }

    fn dot(&mut self, all: &'e [Expression], environment: &Environment) -> Found<Value> {
        let mut parts = Vec::new();
        for one in all {
            parts.extend_from_slice(self.evaluate(one, environment)?.parts());
            if parts.len() > ELEMENTS {
                return self.too_much(one.place, &format!("at most {ELEMENTS} values with dots between them"));
            }
        }
        Ok(Value::dotted(parts))
    }

    fn name(&mut self, symbol: Symbol, place: Place, environment: &Environment) -> Found<Value> {
        if let Some(value) = find(environment, symbol) {
            return match value {
                Value::Function(closure) if self.program.definition(closure.definition).parameters == 0 => {
                    let closure = closure.clone();
                    self.constant(&closure, place)
                }
                value => Ok(value.clone()),
            };
        }
        match self.program.globals.get(&symbol) {
            Some(&Global::Definition(definition)) => {
                let closure = Arc::new(Closure { definition, captured: Arc::new([]) });
                match self.program.definition(definition).parameters {
                    0 => self.constant(&closure, place),
                    _ => Ok(Value::Function(closure)),
                }
            }
            Some(&Global::Channel(channel)) => self.ready(place).map(|_| Value::Channel(channel)),
            Some(&Global::Constructor(constructor)) => Ok(Value::Constructor(constructor)),
            Some(&Global::Type(number)) => self.type_values(number, place),
            Some(Global::Transparent) => Ok(Value::Transparent),
            Some(&Global::Builtin(builtin)) => self.builtin(builtin, place),
            None => Err(self.program.error(place, "a defined name", format!("`{}`", self.program.name(symbol)))),
        }
    }

    fn closure(&self, definition: DefinitionId, environment: &Environment) -> Arc<Closure> {
        let free = &self.program.definition(definition).free;
        let captured = free.iter().filter_map(|&symbol| find(environment, symbol).cloned()).collect();
        Arc::new(Closure { definition, captured })
    }

    /// The names of a `let`.
    fn group(&self, group: &[DefinitionId], environment: &Environment) -> Environment {
        let mut inner = environment.clone();
        for &id in group {
            let closure = self.closure(id, environment);
            inner = with(&inner, self.program.definition(id).symbol, Value::Function(closure));
        }
        inner
    }

    /// What is bound around the parameters of a definition.
    fn around(&self, closure: &Closure) -> Environment {
        let definition = self.program.definition(closure.definition);
        let mut environment = None;
        for (&symbol, value) in definition.free.iter().zip(closure.captured.iter()) {
            environment = with(&environment, symbol, value.clone());
        }
        for &id in &definition.group {
            let closure = Arc::new(Closure { definition: id, captured: closure.captured.clone() });
            environment = with(&environment, self.program.definition(id).symbol, Value::Function(closure));
        }
        environment
    }

    /// A definition without parameters.
    fn constant(&mut self, closure: &Arc<Closure>, place: Place) -> Found<Value> {
        if self.program.definition(closure.definition).is_process {
            return self.instance(Instance::Call(closure.clone(), Arc::new([])), place).map(Value::Process);
        }
        let constant = Constant::Definition(closure.clone());
        self.remembered(constant, place, |evaluator| evaluator.call(closure, &[], place))
    }

    fn remembered(&mut self, constant: Constant, place: Place, make: impl FnOnce(&mut Self) -> Found<Value>) -> Found<Value> {
        match self.unfolding.constants.get(&constant) {
            Some(Some(value)) => return Ok(value.clone()),
            Some(None) => {
                return Err(self.program.error(place, "a definition that does not need itself", String::from("one that does")));
            }
            None => {}
        }
        self.unfolding.constants.insert(constant.clone(), None);
        let value = make(self)?;
        self.unfolding.constants.insert(constant, Some(value.clone()));
        Ok(value)
    }

    /// The body of a definition for arguments.
    fn call(&mut self, closure: &Closure, arguments: &[Value], place: Place) -> Found<Value> {
        let program = self.program;
        let around = self.around(closure);
        for clause in &program.definition(closure.definition).clauses {
            if let Some(environment) = self.match_all(&clause.patterns, arguments, &around) {
                return self.evaluate(&clause.body, &environment);
            }
        }
        let expected = format!("arguments of `{}`", program.name(program.definition(closure.definition).symbol));
        self.wrong(place, &expected, &Value::tuple(arguments.to_vec()))
    }

    fn apply(
        &mut self,
        place: Place,
        function: &'e Expression,
        arguments: &'e [Expression],
        environment: &Environment,
    ) -> Found<Value> {
        let called = self.evaluate(function, environment)?;
        match called {
            Value::Function(closure) => {
                let arguments = self.all(arguments, environment)?;
                let definition = self.program.definition(closure.definition);
                if definition.parameters != arguments.len() {
                    let expected = format!("{} arguments of `{}`", definition.parameters, self.program.name(definition.symbol));
                    return Err(self.program.error(place, &expected, arguments.len().to_string()));
                }
                if definition.is_process {
                    return self.instance(Instance::Call(closure, arguments.into()), place).map(Value::Process);
                }
                self.call(&closure, &arguments, place)
            }
            Value::Builtin(builtin) => self.call_builtin(builtin, place, arguments, environment),
            Value::Transparent if arguments.len() == 1 => self.process(&arguments[0], environment).map(Value::Process),
            other => self.wrong(place, "a function", &other),
        }
    }

    fn number(&mut self, expression: &'e Expression, environment: &Environment) -> Found<i64> {
        match self.evaluate(expression, environment)? {
            Value::Number(number) => Ok(number),
            other => self.wrong(expression.place, "a number", &other),
        }
    }

    fn truth(&mut self, expression: &'e Expression, environment: &Environment) -> Found<bool> {
        match self.evaluate(expression, environment)? {
            Value::Bool(truth) => Ok(truth),
            other => self.wrong(expression.place, "`true` or `false`", &other),
        }
    }

    fn sequence(&mut self, expression: &'e Expression, environment: &Environment) -> Found<Arc<[Value]>> {
        match self.evaluate(expression, environment)? {
            Value::Sequence(all) => Ok(all),
            other => self.wrong(expression.place, "a sequence", &other),
        }
    }

    fn set(&mut self, expression: &'e Expression, environment: &Environment) -> Found<Arc<BTreeSet<Value>>> {
        match self.evaluate(expression, environment)? {
            Value::Set(all) => Ok(all),
            other => self.wrong(expression.place, "a set", &other),
        }
    }

    fn process(&mut self, expression: &'e Expression, environment: &Environment) -> Found<TermId> {
        match self.evaluate(expression, environment)? {
            Value::Process(process) => Ok(process),
            Value::Channel(_) | Value::Dotted(_) => {
                Err(self.program.error(expression.place, "a process", String::from("an event: `->` is missing behind it")))
            }
            other => self.wrong(expression.place, "a process", &other),
        }
    }

    fn make(&mut self, term: Term, place: Place) -> Found<TermId> {
        let heights = &self.unfolding.heights;
        let of = |id: &TermId| heights.get(id).map_or(0, |height| height + 1);
        let height = match &term {
            Term::Stop | Term::Skip | Term::Done | Term::Call(_) => 0,
            Term::Prefix(_, inner) | Term::Hide(inner, _) | Term::Rename(inner, _) => of(inner),
            Term::External(one, other)
            | Term::Internal(one, other)
            | Term::Parallel(one, _, other)
            | Term::Interrupt(one, other)
            | Term::Sequence(one, other) => of(one).max(of(other)),
        };
        if height > HEIGHT {
            return self.too_much(place, &format!("a process of at most {HEIGHT} operators within each other"));
        }
        let id = self.processes.make(term);
        self.unfolding.heights.insert(id, height);
        Ok(id)
    }
}
