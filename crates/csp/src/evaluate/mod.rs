//! What expressions of scripts stand for: values, and terms of the algebra.
//!
//! Processes are evaluated up to the calls in them. A call with its arguments is an instance, a name of the algebra whose body is
//! made only where an exploration steps it; so recursion through calls needs no end, and what a guard excludes is never looked
//! at. All other recursion is bounded, and so is what all evaluations of a script do.

mod builtin;
mod collections;
mod declare;
mod prefix;
mod processes;
mod value;

pub use builtin::Builtin;
pub use value::{Closure, Value, shown};

use crate::lexer::Place;
use crate::parse::{Asked, Asserted};
use crate::refine::Model;
use crate::script::Claim;
use crate::syntax::{
    DefinitionId, Expression, Global, Kind, Operator, Pattern, PatternKind, Program, ScriptError, Symbol, Unary,
};
use crate::term::{Event, Name, Processes, Term, TermId};
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
pub struct Unfolding {
    program: Arc<Program>,
    names: FxHashMap<Instance, Name>,
    pending: FxHashMap<Name, Instance>,
    /// `None`: being evaluated.
    constants: FxHashMap<Constant, Option<Value>>,
    heights: FxHashMap<TermId, usize>,
    steps: u64,
    arguments: usize,
}

impl Unfolding {
    pub fn is_pending(&self, name: Name) -> bool {
        self.pending.contains_key(&name)
    }

    pub fn first_pending(&self) -> Option<Name> {
        self.pending.keys().min().copied()
    }
}

/// Events, all processes without parameters, and what is asserted of which terms.
pub fn script(mut program: Program, asserted: &[Asserted]) -> Result<(Processes, Vec<Claim>), ScriptError> {
    let mut processes = Processes::default();
    declare::signature(&mut program, &mut processes)?;
    processes.unfolding.program = Arc::new(program);
    let program = processes.unfolding.program.clone();
    let mut evaluator = Evaluator { program: &program, processes: &mut processes, depth: 0 };
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
        claims.push(match &one.asked {
            Asked::Refines(model, other) => Claim::Refines(*model, process, evaluator.process(other, &None)?),
            Asked::DeadlockFree => Claim::DeadlockFree(process),
            Asked::DivergenceFree => Claim::DivergenceFree(process),
            Asked::Free => Claim::Free(process),
            Asked::Deterministic(model) => Claim::Deterministic(*model == Model::FailuresDivergences, process),
        });
    }
    // What is wrong in a definition is told at once, and not only where an exploration comes there.
    for name in (0..processes.definitions.len() as u32).map(Name) {
        if let Some(Instance::Call(closure, arguments)) = processes.unfolding.pending.get(&name)
            && arguments.is_empty()
            && constants.contains(&closure.definition)
        {
            unfold(&mut processes, name)?;
        }
    }
    Ok((processes, claims))
}

/// The body of an instance, made if it is not known yet.
pub fn unfold(processes: &mut Processes, name: Name) -> Result<TermId, ScriptError> {
    let Some(instance) = processes.unfolding.pending.get(&name).cloned() else { return Ok(processes.body(name)) };
    let program = processes.unfolding.program.clone();
    processes.unfolding.steps = 0;
    let mut evaluator = Evaluator { program: &program, processes, depth: 0 };
    let body = evaluator.body(&instance, name)?;
    processes.definitions[name.0 as usize].1 = body;
    processes.unfolding.pending.remove(&name);
    Ok(body)
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
        self.processes.unfolding.steps += 1;
        if self.processes.unfolding.steps > STEPS {
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
        match self.processes.unfolding.constants.get(&constant) {
            Some(Some(value)) => return Ok(value.clone()),
            Some(None) => {
                return Err(self.program.error(place, "a definition that does not need itself", String::from("one that does")));
            }
            None => {}
        }
        self.processes.unfolding.constants.insert(constant.clone(), None);
        let value = make(self)?;
        self.processes.unfolding.constants.insert(constant, Some(value.clone()));
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

    fn unary(&mut self, operator: Unary, inner: &'e Expression, environment: &Environment) -> Found<Value> {
        Ok(match operator {
            Unary::Not => Value::Bool(!self.truth(inner, environment)?),
            Unary::Negate => match self.number(inner, environment)?.checked_neg() {
                Some(number) => Value::Number(number),
                None => return self.too_much(inner.place, "a number of 64 bits"),
            },
            Unary::Length => Value::Number(self.sequence(inner, environment)?.len() as i64),
        })
    }

    fn binary(&mut self, operator: Operator, sides: &'e [Expression; 2], environment: &Environment) -> Found<Value> {
        let [one, other] = sides;
        match operator {
            Operator::And => {
                return Ok(Value::Bool(self.truth(one, environment)? && self.truth(other, environment)?));
            }
            Operator::Or => {
                return Ok(Value::Bool(self.truth(one, environment)? || self.truth(other, environment)?));
            }
            Operator::Concatenate => {
                let mut all = self.sequence(one, environment)?.to_vec();
                all.extend_from_slice(&self.sequence(other, environment)?);
                if all.len() > ELEMENTS {
                    return self.too_much(one.place, &format!("a sequence of at most {ELEMENTS} elements"));
                }
                return Ok(Value::Sequence(all.into()));
            }
            _ => {}
        }
        let (left, right) = (self.evaluate(one, environment)?, self.evaluate(other, environment)?);
        if let Some(ordered) = compared(operator, &left, &right) {
            return Ok(Value::Bool(ordered));
        }
        let (Value::Number(left), Value::Number(right)) = (&left, &right) else {
            let (place, value) = if matches!(left, Value::Number(_)) { (other.place, right) } else { (one.place, left) };
            return self.wrong(place, "a number", &value);
        };
        let number = match operator {
            Operator::Add => left.checked_add(*right),
            Operator::Subtract => left.checked_sub(*right),
            Operator::Multiply => left.checked_mul(*right),
            _ if *right == 0 => return self.wrong(other.place, "a divisor that is not 0", &Value::Number(0)),
            // Rounded down, as in FDR.
            Operator::Divide => floor(*left, *right),
            _ => floor(*left, *right).and_then(|quotient| left.checked_sub(quotient.checked_mul(*right)?)),
        };
        match number {
            Some(number) => Ok(Value::Number(number)),
            None => self.too_much(one.place, "a number of 64 bits"),
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

    fn match_all(&self, patterns: &[Pattern], values: &[Value], around: &Environment) -> Option<Environment> {
        let mut environment = around.clone();
        for (pattern, value) in patterns.iter().zip(values) {
            environment = self.matched(pattern, value, &environment)?;
        }
        Some(environment)
    }

    /// With what the pattern binds, if the value is of that form.
    fn matched(&self, pattern: &Pattern, value: &Value, environment: &Environment) -> Option<Environment> {
        match (&pattern.kind, value) {
            (PatternKind::Anything, _) => Some(environment.clone()),
            (PatternKind::Number(number), Value::Number(value)) => (number == value).then(|| environment.clone()),
            (PatternKind::Name(symbol), value) => match self.literal(*symbol) {
                Some(literal) => (literal == *value).then(|| environment.clone()),
                None => Some(with(environment, *symbol, value.clone())),
            },
            (PatternKind::Tuple(patterns), Value::Tuple(values)) if patterns.len() == values.len() => {
                self.match_all(patterns, values, environment)
            }
            (PatternKind::Dot(patterns), Value::Dotted(values)) if patterns.len() <= values.len() => {
                let (last, first) = patterns.split_last()?;
                let (own, rest) = values.split_at(first.len());
                let environment = self.match_all(first, own, environment)?;
                self.matched(last, &Value::dotted(rest.to_vec()), &environment)
            }
            (PatternKind::Sequence(first, middle, last), Value::Sequence(values)) => {
                let rest = values.len().checked_sub(first.len() + last.len())?;
                let (start, behind) = values.split_at(first.len());
                let (between, end) = behind.split_at(rest);
                let mut environment = self.match_all(first, start, environment)?;
                match middle {
                    Some(middle) => environment = self.matched(middle, &Value::Sequence(between.into()), &environment)?,
                    None if rest > 0 => return None,
                    None => {}
                }
                self.match_all(last, end, &environment)
            }
            (PatternKind::Set(one), Value::Set(values)) => match (one, values.first(), values.len()) {
                (None, _, 0) => Some(environment.clone()),
                (Some(pattern), Some(value), 1) => self.matched(pattern, value, environment),
                _ => None,
            },
            (PatternKind::Both(both), value) => {
                let environment = self.matched(&both[0], value, environment)?;
                self.matched(&both[1], value, &environment)
            }
            _ => None,
        }
    }

    /// What a name in a pattern stands for, unless it is a variable.
    fn literal(&self, symbol: Symbol) -> Option<Value> {
        match self.program.globals.get(&symbol)? {
            Global::Channel(channel) => Some(Value::Channel(*channel)),
            Global::Constructor(constructor) => Some(Value::Constructor(*constructor)),
            Global::Builtin(Builtin::True) => Some(Value::Bool(true)),
            Global::Builtin(Builtin::False) => Some(Value::Bool(false)),
            _ => None,
        }
    }

    fn make(&mut self, term: Term, place: Place) -> Found<TermId> {
        let heights = &self.processes.unfolding.heights;
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
        self.processes.unfolding.heights.insert(id, height);
        Ok(id)
    }
}

fn floor(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    Some(if left.checked_rem(right)? != 0 && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
}

/// Equality of all values, order of numbers, of sets (parts) and of sequences (beginnings).
fn compared(operator: Operator, left: &Value, right: &Value) -> Option<bool> {
    let at_most = |one: &Value, other: &Value| match (one, other) {
        (Value::Number(one), Value::Number(other)) => Some(one <= other),
        (Value::Set(one), Value::Set(other)) => Some(one.is_subset(other)),
        (Value::Sequence(one), Value::Sequence(other)) => Some(other.starts_with(one)),
        _ => None,
    };
    match operator {
        Operator::Equal => Some(left == right),
        Operator::Unequal => Some(left != right),
        Operator::LessOrEqual => at_most(left, right),
        Operator::Less => at_most(left, right).map(|at_most| at_most && left != right),
        Operator::GreaterOrEqual => at_most(right, left),
        Operator::Greater => at_most(right, left).map(|at_most| at_most && left != right),
        _ => None,
    }
}
