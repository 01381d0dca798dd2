//! Patterns, of expressions.

use super::Parser;
use crate::error::ScriptError;
use crate::syntax::{Expression, Items, Kind, Operator, Pattern, PatternKind, Shape};

const PATTERN: &str = "a pattern: a name, a number, `_`, or such ones in a tuple, a sequence, a set or with dots between them";

impl Parser<'_, '_> {
    pub(super) fn pattern(&mut self, from: Expression) -> Result<Pattern, ScriptError> {
        let place = from.place;
        let kind = match from.kind {
            Kind::Anything => PatternKind::Anything,
            Kind::Number(number) => PatternKind::Number(number),
            Kind::Unary(crate::syntax::Unary::Negate, inner) => match inner.kind {
                Kind::Number(number) => PatternKind::Number(-number),
                _ => return self.wrong_at(place, PATTERN, "an expression"),
            },
            Kind::Name(name) => PatternKind::Name(name),
            Kind::Tuple(all) => PatternKind::Tuple(self.patterns(all)?),
            Kind::Dot(all) => PatternKind::Dot(self.patterns(all)?),
            Kind::Both(both) => {
                let [one, other] = *both;
                PatternKind::Both(Box::new([self.pattern(one)?, self.pattern(other)?]))
            }
            Kind::Collection(Shape::Sequence, Items::Listed(all), conditions) if conditions.is_empty() => {
                PatternKind::Sequence(self.patterns(all)?, None, Vec::new())
            }
            Kind::Collection(Shape::Set, Items::Listed(mut all), conditions) if conditions.is_empty() && all.len() <= 1 => {
                let one = all.pop().map(|one| self.pattern(one)).transpose()?;
                PatternKind::Set(one.map(Box::new))
            }
            Kind::Binary(Operator::Concatenate, both) => {
                let [one, other] = *both;
                let (one, other) = (self.pattern(one)?, self.pattern(other)?);
                match joined(one, other) {
                    Some(kind) => kind,
                    None => return self.wrong_at(place, "one name at most among sequences of known length", "more"),
                }
            }
            _ => return self.wrong_at(place, PATTERN, "an expression"),
        };
        Ok(Pattern { place, kind })
    }

    fn patterns(&mut self, all: Vec<Expression>) -> Result<Vec<Pattern>, ScriptError> {
        all.into_iter().map(|one| self.pattern(one)).collect()
    }
}

/// `one^other`.
fn joined(one: Pattern, other: Pattern) -> Option<PatternKind> {
    let parts = |pattern: Pattern| match pattern.kind {
        PatternKind::Sequence(first, middle, last) => (first, middle, last),
        _ => (Vec::new(), Some(Box::new(pattern)), Vec::new()),
    };
    let ((mut first, middle, mut last), (more, other, end)) = (parts(one), parts(other));
    match (middle, other) {
        (None, middle) => {
            first.extend(more);
            Some(PatternKind::Sequence(first, middle, end))
        }
        (middle, None) => {
            last.extend(more);
            Some(PatternKind::Sequence(first, middle, last))
        }
        _ => None,
    }
}
