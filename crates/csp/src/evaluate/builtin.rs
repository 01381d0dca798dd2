//! Functions and sets that every script knows.

use super::{ELEMENTS, Environment, Evaluator, Found, Instance, Value};
use crate::builtin::Builtin;
use crate::error::Place;
use crate::syntax::Expression;
use std::collections::BTreeSet;
use std::sync::Arc;

impl<'e> Evaluator<'e> {
    /// What the name alone stands for.
    pub(super) fn builtin(&mut self, builtin: Builtin, place: Place) -> Found<Value> {
        Ok(match builtin {
            Builtin::True => Value::Bool(true),
            Builtin::False => Value::Bool(false),
            Builtin::Bool => Value::Set(Arc::new(BTreeSet::from([Value::Bool(false), Value::Bool(true)]))),
            Builtin::Int => return Err(self.program.error(place, "a finite set", String::from("`Int`"))),
            Builtin::Events => {
                self.ready(place)?;
                Value::Set(Arc::new(self.signature.names.iter().cloned().collect()))
            }
            Builtin::Diverge => {
                let nothing = Value::Set(Arc::default());
                Value::Process(self.instance(Instance::Builtin(builtin, nothing), place)?)
            }
            function => Value::Builtin(function),
        })
    }

    pub(super) fn call_builtin(
        &mut self,
        builtin: Builtin,
        place: Place,
        arguments: &'e [Expression],
        environment: &Environment,
    ) -> Found<Value> {
        let wanted = match builtin {
            Builtin::Union | Builtin::Inter | Builtin::Diff | Builtin::Member | Builtin::Element => 2,
            _ => 1,
        };
        if arguments.len() != wanted {
            let expected = format!("{wanted} arguments of `{}`", builtin.name());
            return Err(self.program.error(place, &expected, arguments.len().to_string()));
        }
        let one = &arguments[0];
        Ok(match builtin {
            Builtin::Union | Builtin::Inter | Builtin::Diff => {
                let (left, right) = (self.set(one, environment)?, self.set(&arguments[1], environment)?);
                let all = match builtin {
                    Builtin::Union => &*left | &*right,
                    Builtin::Inter => &*left & &*right,
                    _ => &*left - &*right,
                };
                self.bounded_set(all, place)?
            }
            Builtin::Member => {
                let value = self.evaluate(one, environment)?;
                Value::Bool(self.set(&arguments[1], environment)?.contains(&value))
            }
            Builtin::Element => {
                let value = self.evaluate(one, environment)?;
                Value::Bool(self.sequence(&arguments[1], environment)?.contains(&value))
            }
            Builtin::UnionOfAll | Builtin::InterOfAll => {
                let mut all: Option<BTreeSet<Value>> = None;
                for set in self.set(one, environment)?.iter() {
                    self.step(place)?;
                    let Value::Set(set) = set else { return self.wrong(one.place, "a set of sets", set) };
                    all = Some(match all {
                        None => (**set).clone(),
                        Some(all) if builtin == Builtin::UnionOfAll => &all | &**set,
                        Some(all) => &all & &**set,
                    });
                }
                self.bounded_set(all.unwrap_or_default(), place)?
            }
            Builtin::Card => Value::Number(self.set(one, environment)?.len() as i64),
            Builtin::Empty => Value::Bool(self.set(one, environment)?.is_empty()),
            Builtin::Subsets => {
                let of = self.set(one, environment)?;
                self.subsets(&of, one.place)?
            }
            Builtin::SetOf => Value::Set(Arc::new(self.sequence(one, environment)?.iter().cloned().collect())),
            Builtin::SequenceOf => Value::Sequence(self.set(one, environment)?.iter().cloned().collect()),
            Builtin::Null | Builtin::Length | Builtin::Head | Builtin::Tail | Builtin::Concat => {
                let all = self.sequence(one, environment)?;
                self.of_sequence(builtin, all, one.place)?
            }
            Builtin::Productions | Builtin::Extensions => {
                let of = self.evaluate(one, environment)?;
                let strip = if builtin == Builtin::Extensions { of.parts().len() } else { 0 };
                let mut all = BTreeSet::new();
                for event in self.productions(&of, one.place)? {
                    if event.len() > strip {
                        all.insert(Value::dotted(event[strip..].to_vec()));
                    }
                }
                Value::Set(Arc::new(all))
            }
            Builtin::Chaos | Builtin::Run => {
                let events = self.set(one, environment)?;
                self.events(&events, one.place)?;
                Value::Process(self.instance(Instance::Builtin(builtin, Value::Set(events)), place)?)
            }
            Builtin::True | Builtin::False | Builtin::Bool | Builtin::Int | Builtin::Events | Builtin::Diverge => {
                return Err(self.program.error(place, "a function", format!("`{}`", builtin.name())));
            }
        })
    }

    fn of_sequence(&self, builtin: Builtin, all: Arc<[Value]>, place: Place) -> Found<Value> {
        Ok(match builtin {
            Builtin::Null => Value::Bool(all.is_empty()),
            Builtin::Length => Value::Number(all.len() as i64),
            Builtin::Concat => {
                let mut joined = Vec::new();
                for part in all.iter() {
                    let Value::Sequence(part) = part else { return self.wrong(place, "a sequence of sequences", part) };
                    joined.extend_from_slice(part);
                    self.bounded(joined.len(), place)?;
                }
                Value::Sequence(joined.into())
            }
            _ => match all.split_first() {
                None => return self.wrong(place, "a sequence that is not empty", &Value::Sequence(all)),
                Some((head, _)) if builtin == Builtin::Head => head.clone(),
                Some((_, tail)) => Value::Sequence(tail.into()),
            },
        })
    }

    pub(super) fn bounded(&self, length: usize, place: Place) -> Found<()> {
        if length > ELEMENTS {
            return self.too_much(place, &format!("at most {ELEMENTS} elements"));
        }
        Ok(())
    }

    pub(super) fn bounded_set(&self, set: BTreeSet<Value>, place: Place) -> Found<Value> {
        self.bounded(set.len(), place)?;
        Ok(Value::Set(Arc::new(set)))
    }

    fn subsets(&mut self, of: &BTreeSet<Value>, place: Place) -> Found<Value> {
        let mut all = vec![BTreeSet::new()];
        for value in of {
            let more: Vec<_> = all
                .iter()
                .map(|set| {
                    let mut set = set.clone();
                    set.insert(value.clone());
                    set
                })
                .collect();
            all.extend(more);
            // The sets have as many elements in all as there are subsets, half their number of times.
            self.bounded(all.len().saturating_mul(of.len()), place)?;
        }
        Ok(Value::Set(Arc::new(all.into_iter().map(|set| Value::Set(Arc::new(set))).collect())))
    }
}
