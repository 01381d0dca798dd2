//! Prefixes: events with fields that are given, received or chosen.

use super::declare::product;
use super::{ELEMENTS, Environment, Evaluator, Found, Value};
use crate::error::Place;
use crate::syntax::{Field, Pattern, PatternKind, Prefix};
use crate::term::{Event, Events, Term, TermId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The beginning of an event.
#[derive(Clone)]
pub(super) struct Beginning {
    channel: u32,
    parts: Vec<Value>,
    /// Complete fields, and parts of the next one.
    fields: usize,
    within: usize,
}

impl<'e> Evaluator<'e> {
    pub(super) fn prefix(&mut self, prefix: &'e Prefix, environment: &Environment) -> Found<TermId> {
        let event = self.evaluate(&prefix.event, environment)?;
        let beginning = self.beginning(&event, prefix.event.place)?;
        self.fields(prefix, &prefix.fields, &beginning, environment)
    }

    /// A channel with what dots give it.
    pub(super) fn beginning(&mut self, event: &Value, place: Place) -> Found<Beginning> {
        let (first, rest) = match event.parts().split_first() {
            Some((&Value::Channel(channel), rest)) => (channel, rest),
            _ => return self.wrong(place, "an event", event),
        };
        let empty = Beginning { channel: first, parts: vec![Value::Channel(first)], fields: 0, within: 0 };
        self.given(empty, rest, place)
    }

    fn given(&mut self, mut beginning: Beginning, parts: &[Value], place: Place) -> Found<Beginning> {
        let all = &self.ready(place)?[beginning.channel as usize];
        for part in parts {
            self.step(place)?;
            let Some(field) = all.get(beginning.fields) else {
                let channel = Value::Channel(beginning.channel);
                let expected = format!("{} fields of `{}`", all.len(), super::shown(self.program, &channel));
                return self.wrong(place, &expected, &Value::dotted([&beginning.parts[1..], parts].concat()));
            };
            beginning.parts.push(part.clone());
            beginning.within += 1;
            let own = &beginning.parts[beginning.parts.len() - beginning.within..];
            if field.contains(&Value::dotted(own.to_vec())) {
                beginning.fields += 1;
                beginning.within = 0;
            } else if !field.iter().any(|value| value.parts().starts_with(own)) {
                let found = Value::dotted(own.to_vec());
                let expected = format!("a value of {}", super::shown(self.program, &Value::Set(field.clone())));
                return self.wrong(place, &expected, &found);
            }
        }
        Ok(beginning)
    }

    /// What may come next: the rest of the field that has begun, or with `all`, of all fields.
    fn candidates(&mut self, beginning: &Beginning, all: bool, place: Place) -> Found<Vec<Vec<Value>>> {
        let fields = &self.ready(place)?[beginning.channel as usize];
        let own = &beginning.parts[beginning.parts.len() - beginning.within..];
        let Some(field) = fields.get(beginning.fields) else { return Ok(vec![Vec::new()]) };
        let rest = field.iter().filter(|value| value.parts().starts_with(own)).map(|value| value.parts()[own.len()..].to_vec());
        let rest: Vec<_> = rest.collect();
        let more = if all { &fields[beginning.fields + 1..] } else { &[] };
        let count = more.iter().try_fold(rest.len(), |count, field| count.checked_mul(field.len()));
        self.bounded(count.unwrap_or(usize::MAX), place)?;
        Ok(product(rest, more))
    }

    /// Every event that begins so, in its parts.
    pub(super) fn productions(&mut self, of: &Value, place: Place) -> Found<Vec<Vec<Value>>> {
        let beginning = self.beginning(of, place)?;
        let rests = self.candidates(&beginning, true, place)?;
        Ok(rests.into_iter().map(|rest| [beginning.parts.as_slice(), &rest].concat()).collect())
    }

    fn fields(
        &mut self,
        prefix: &'e Prefix,
        fields: &'e [Field],
        beginning: &Beginning,
        environment: &Environment,
    ) -> Found<TermId> {
        let Some((field, rest)) = fields.split_first() else {
            let event = self.event(&Value::dotted(beginning.parts.clone()), prefix.event.place)?;
            let then = self.process(&prefix.then, environment)?;
            return self.make(Term::Prefix(event, then), prefix.event.place);
        };
        match field {
            Field::Output(value) => {
                let given = self.evaluate(value, environment)?;
                let beginning = self.given(beginning.clone(), given.parts(), value.place)?;
                self.fields(prefix, rest, &beginning, environment)
            }
            Field::Input(pattern, set) | Field::Choice(pattern, set) => {
                let set = set.as_ref().map(|set| self.set(set, environment)).transpose()?;
                let chosen = matches!(field, Field::Choice(..));
                let parts = match (&pattern.kind, &set) {
                    (PatternKind::Dot(parts), None) => parts.as_slice(),
                    _ => std::slice::from_ref(pattern),
                };
                let from = From { prefix, rest, parts, set, chosen };
                self.received(&from, beginning, environment)
            }
        }
    }

    /// A choice between all that a pattern can name.
    fn received(&mut self, from: &From<'e>, beginning: &Beginning, environment: &Environment) -> Found<TermId> {
        let Some((pattern, more)) = from.parts.split_first() else {
            return self.fields(from.prefix, from.rest, beginning, environment);
        };
        let place = pattern.place;
        let last = more.is_empty() && from.rest.is_empty();
        let mut all = Vec::new();
        for rest in self.candidates(beginning, last, place)? {
            // A constructor that begins a field with more behind it.
            let literal = if let PatternKind::Name(symbol) = pattern.kind { self.literal(symbol) } else { None };
            let part = match (&literal, rest.first()) {
                (Some(_), Some(first)) if !more.is_empty() => std::slice::from_ref(first),
                _ => rest.as_slice(),
            };
            if part.is_empty() {
                let expected = format!("a field of `{}`", super::shown(self.program, &Value::Channel(beginning.channel)));
                return Err(self.program.error(place, &expected, String::from("no more fields")));
            }
            let value = Value::dotted(part.to_vec());
            if from.set.as_ref().is_some_and(|set| !set.contains(&value)) {
                continue;
            }
            let Some(inner) = self.matched(pattern, &value, environment) else { continue };
            let beginning = self.given(beginning.clone(), part, place)?;
            let from = From { parts: more, set: None, ..from.clone() };
            let one = self.received(&from, &beginning, &inner)?;
            if !all.contains(&one) || all.len() > 64 {
                all.push(one);
            }
            self.bounded(all.len(), place)?;
        }
        if from.chosen {
            return match self.combined(all, place, Term::Internal)? {
                Some(chosen) => Ok(chosen),
                None => Err(self.program.error(place, "something to choose from", String::from("nothing"))),
            };
        }
        match self.combined(all, place, Term::External)? {
            Some(choice) => Ok(choice),
            None => self.make(Term::Stop, place),
        }
    }

    pub(super) fn event(&mut self, value: &Value, place: Place) -> Found<Event> {
        self.ready(place)?;
        if let Some(&event) = self.signature.events.get(value) {
            return Ok(event);
        }
        let beginning = self.beginning(value, place)?;
        let fields = self.ready(place)?[beginning.channel as usize].len();
        let channel = super::shown(self.program, &Value::Channel(beginning.channel));
        self.wrong(place, &format!("an event with the {fields} fields of `{channel}`"), value)
    }

    /// Sets of values as sets of events.
    pub(super) fn events(&mut self, set: &BTreeSet<Value>, place: Place) -> Found<Events> {
        debug_assert!(set.len() <= ELEMENTS);
        let mut events = BTreeSet::new();
        for value in set {
            events.insert(self.event(value, place)?);
        }
        Ok(events.into())
    }
}

/// Where something is received, and what follows.
#[derive(Clone)]
struct From<'e> {
    prefix: &'e Prefix,
    rest: &'e [Field],
    parts: &'e [Pattern],
    set: Option<Arc<BTreeSet<Value>>>,
    chosen: bool,
}
