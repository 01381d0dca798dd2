//! Patterns and values.

use super::{Environment, Evaluator, Value, with};
use crate::builtin::Builtin;
use crate::syntax::{Global, Pattern, PatternKind, Symbol};

impl Evaluator<'_> {
    pub(super) fn match_all(&self, patterns: &[Pattern], values: &[Value], around: &Environment) -> Option<Environment> {
        let mut environment = around.clone();
        for (pattern, value) in patterns.iter().zip(values) {
            environment = self.matched(pattern, value, &environment)?;
        }
        Some(environment)
    }

    /// With what the pattern binds, if the value is of that form.
    pub(super) fn matched(&self, pattern: &Pattern, value: &Value, environment: &Environment) -> Option<Environment> {
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
    pub(super) fn literal(&self, symbol: Symbol) -> Option<Value> {
        match self.program.globals.get(&symbol)? {
            Global::Channel(channel) => Some(Value::Channel(*channel)),
            Global::Constructor(constructor) => Some(Value::Constructor(*constructor)),
            Global::Builtin(Builtin::True) => Some(Value::Bool(true)),
            Global::Builtin(Builtin::False) => Some(Value::Bool(false)),
            _ => None,
        }
    }
}
