//! Sets and sequences: listed, ranges, comprehensions, and what completes events.

use super::{Environment, Evaluator, Found, Value};
use crate::error::Place;
use crate::syntax::{Expression, Items, Qualifier, Shape};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is done for each choice of what qualifiers name.
type Each<'a, 'e> = &'a mut dyn FnMut(&mut Evaluator<'e>, &Environment) -> Found<()>;

impl<'e> Evaluator<'e> {
    pub(super) fn collection(
        &mut self,
        place: Place,
        shape: Shape,
        items: &'e Items,
        qualifiers: &'e [Qualifier],
        environment: &Environment,
    ) -> Found<Value> {
        let mut all = Vec::new();
        let mut set = BTreeSet::new();
        self.each(qualifiers, environment, &mut |evaluator, environment| {
            let values = match items {
                Items::Listed(values) => evaluator.all(values, environment)?,
                Items::Range(first, last) => evaluator.range(place, first, last.as_deref(), environment)?,
            };
            for value in values {
                evaluator.step(place)?;
                match shape {
                    Shape::Sequence => all.push(value),
                    Shape::Set => _ = set.insert(value),
                    Shape::Productions => set.extend(evaluator.productions(&value, place)?.into_iter().map(Value::dotted)),
                }
            }
            evaluator.bounded(all.len().max(set.len()), place)
        })?;
        Ok(if shape == Shape::Sequence { Value::Sequence(all.into()) } else { Value::Set(Arc::new(set)) })
    }

    fn range(
        &mut self,
        place: Place,
        first: &'e Expression,
        last: Option<&'e Expression>,
        environment: &Environment,
    ) -> Found<Vec<Value>> {
        let from = self.number(first, environment)?;
        let Some(last) = last else {
            return Err(self.program.error(place, "a range with an end", format!("`{from}..`")));
        };
        let to = self.number(last, environment)?;
        let length = to.checked_sub(from).and_then(|length| usize::try_from(length.max(-1) + 1).ok()).unwrap_or(usize::MAX);
        self.bounded(length, place)?;
        Ok((from..=to).map(Value::Number).collect())
    }

    /// All choices of what the qualifiers name, in order.
    pub(super) fn each(&mut self, qualifiers: &'e [Qualifier], environment: &Environment, visit: Each<'_, 'e>) -> Found<()> {
        let Some((first, rest)) = qualifiers.split_first() else { return visit(self, environment) };
        match first {
            Qualifier::Condition(condition) => {
                if self.truth(condition, environment)? {
                    self.each(rest, environment, visit)?;
                }
            }
            Qualifier::Each(pattern, of) => {
                let values: Vec<Value> = match self.evaluate(of, environment)? {
                    Value::Set(values) => values.iter().cloned().collect(),
                    Value::Sequence(values) => values.to_vec(),
                    other => return self.wrong(of.place, "a finite set or a sequence", &other),
                };
                for value in values {
                    self.step(of.place)?;
                    if let Some(inner) = self.matched(pattern, &value, environment) {
                        self.each(rest, &inner, visit)?;
                    }
                }
            }
        }
        Ok(())
    }
}
