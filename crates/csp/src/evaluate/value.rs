//! Values of expressions.

use crate::builtin::Builtin;
use crate::syntax::{DefinitionId, Program};
use crate::term::TermId;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// A function or a constant, with what it takes from around its `let`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Closure {
    pub definition: DefinitionId,
    pub captured: Arc<[Value]>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Number(i64),
    Bool(bool),
    Constructor(u32),
    Channel(u32),
    /// At least two, none of which is dotted itself.
    Dotted(Arc<[Value]>),
    Tuple(Arc<[Value]>),
    Sequence(Arc<[Value]>),
    Set(Arc<BTreeSet<Value>>),
    Function(Arc<Closure>),
    Builtin(Builtin),
    /// Gives back the process that it is applied to.
    Transparent,
    Process(TermId),
}

impl Value {
    /// What dots separate.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Dotted(parts) => parts,
            other => std::slice::from_ref(other),
        }
    }

    pub fn dotted(parts: Vec<Self>) -> Self {
        match <[Self; 1]>::try_from(parts) {
            Ok([one]) => one,
            Err(parts) => Self::Dotted(parts.into()),
        }
    }

    /// Values within it, itself included.
    pub fn size(&self) -> usize {
        1 + match self {
            Self::Dotted(parts) | Self::Tuple(parts) | Self::Sequence(parts) => parts.iter().map(Self::size).sum(),
            Self::Set(parts) => parts.iter().map(Self::size).sum(),
            Self::Function(closure) => closure.captured.iter().map(Self::size).sum(),
            _ => 0,
        }
    }

    pub fn tuple(parts: Vec<Self>) -> Self {
        match <[Self; 1]>::try_from(parts) {
            Ok([one]) => one,
            Err(parts) => Self::Tuple(parts.into()),
        }
    }
}

/// Letters of a value that is told, and of the name of an event.
const TOLD: usize = 120;
const NAMED: usize = 1000;

/// As it is written in scripts; long ones are cut short.
pub fn shown(program: &Program, value: &Value) -> String {
    let mut text = String::new();
    show(program, value, TOLD, &mut text);
    text
}

/// The name of an event.
pub fn named(program: &Program, value: &Value) -> String {
    let mut text = String::new();
    show(program, value, NAMED, &mut text);
    text
}

fn show(program: &Program, value: &Value, most: usize, text: &mut String) {
    let mut all = |open: &str, values: &mut dyn Iterator<Item = &Value>, between: &str, close: &str| {
        text.push_str(open);
        for (number, value) in values.enumerate() {
            if text.len() > most {
                text.push('…');
                break;
            }
            if number > 0 {
                text.push_str(between);
            }
            show(program, value, most, text);
        }
        text.push_str(close);
    };
    match value {
        Value::Dotted(parts) => all("", &mut parts.iter(), ".", ""),
        Value::Tuple(parts) => all("(", &mut parts.iter(), ",", ")"),
        Value::Sequence(parts) => all("<", &mut parts.iter(), ",", ">"),
        Value::Set(parts) => all("{", &mut parts.iter(), ",", "}"),
        Value::Number(number) => _ = write!(text, "{number}"),
        Value::Bool(truth) => _ = write!(text, "{truth}"),
        Value::Constructor(number) => text.push_str(program.name(program.constructors[*number as usize])),
        Value::Channel(number) => text.push_str(program.name(program.channels[*number as usize].symbol)),
        Value::Function(closure) => text.push_str(program.name(program.definition(closure.definition).symbol)),
        Value::Builtin(_) | Value::Transparent => text.push_str("(a function)"),
        Value::Process(_) => text.push_str("(a process)"),
    }
}
