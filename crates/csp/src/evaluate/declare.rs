//! Types, and the events of channels.

use super::{Constant, EVENTS, Evaluator, Found, Signature, Unfolding, Value, value};
use crate::error::{Place, ScriptError};
use crate::syntax::{Expression, Global, Kind, Program, TypeBody};
use crate::term::{Event, Processes};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Evaluates what is declared.
pub fn signature(program: &Program, unfolding: &mut Unfolding, processes: &mut Processes) -> Result<Signature, ScriptError> {
    let none = Signature::default();
    let mut evaluator = Evaluator { program, signature: &none, unfolding, processes, depth: 0 };
    let mut signature = Signature::default();
    let mut all = Vec::new();
    for number in 0..program.types.len() as u32 {
        evaluator.type_values(number, program.types[number as usize].place)?;
    }
    for (number, channel) in (0..).zip(&program.channels) {
        let mut fields = Vec::new();
        for field in &channel.fields {
            fields.push(evaluator.type_set(field)?);
        }
        let events = fields.iter().try_fold(1_usize, |events, field| events.checked_mul(field.len()));
        if events.is_none_or(|events| events + signature.names.len() > EVENTS) {
            return evaluator.too_much(channel.place, &format!("at most {EVENTS} events of all channels"));
        }
        for parts in product(vec![vec![Value::Channel(number)]], &fields) {
            let event = Value::dotted(parts);
            signature.events.insert(event.clone(), Event(signature.names.len() as u32));
            signature.names.push(event);
        }
        all.push(fields);
    }
    signature.fields = Some(all);
    // Those that are called alike are told apart by their numbers only.
    processes.events = signature.names.iter().map(|event| value::named(program, event)).collect();
    Ok(signature)
}

/// Each beginning with each combination of values.
pub fn product(beginnings: Vec<Vec<Value>>, fields: &[Arc<BTreeSet<Value>>]) -> Vec<Vec<Value>> {
    fields.iter().fold(beginnings, |beginnings, field| {
        let with = |beginning: &Vec<Value>, value: &Value| [beginning, value.parts()].concat();
        beginnings.iter().flat_map(|beginning| field.iter().map(move |value| with(beginning, value))).collect()
    })
}

impl<'e> Evaluator<'e> {
    /// Where events have to be known.
    pub(super) fn ready(&self, place: Place) -> Found<&'e [Vec<Arc<BTreeSet<Value>>>]> {
        match &self.signature.fields {
            Some(fields) => Ok(fields),
            None => Err(self.program.error(place, "a type that needs no events", String::from("one that does"))),
        }
    }

    pub(super) fn type_values(&mut self, number: u32, place: Place) -> Found<Value> {
        let program = self.program;
        self.remembered(Constant::Type(number), place, |evaluator| {
            let constructors = match &program.types[number as usize].is {
                TypeBody::Name(is) => return evaluator.type_set(is).map(Value::Set),
                TypeBody::Data(constructors) => constructors,
            };
            let mut all = BTreeSet::new();
            for (symbol, place, fields) in constructors {
                let Some(&Global::Constructor(constructor)) = program.globals.get(symbol) else { continue };
                let mut sets = Vec::new();
                for field in fields {
                    sets.push(evaluator.type_set(field)?);
                }
                evaluator.afford(&sets, *place)?;
                all.extend(product(vec![vec![Value::Constructor(constructor)]], &sets).into_iter().map(Value::dotted));
            }
            evaluator.bounded_set(all, place)
        })
    }

    fn afford(&self, sets: &[Arc<BTreeSet<Value>>], place: Place) -> Found<()> {
        let all = sets.iter().try_fold(1_usize, |all, set| all.checked_mul(set.len()));
        self.bounded(all.unwrap_or(usize::MAX), place)
    }

    /// A set, or sets with dots or commas between them.
    fn type_set(&mut self, of: &'e Expression) -> Found<Arc<BTreeSet<Value>>> {
        let (Kind::Dot(parts) | Kind::Tuple(parts)) = &of.kind else { return self.set(of, &None) };
        let mut sets = Vec::new();
        for part in parts {
            sets.push(self.type_set(part)?);
        }
        self.afford(&sets, of.place)?;
        if matches!(of.kind, Kind::Dot(_)) {
            return Ok(Arc::new(product(vec![Vec::new()], &sets).into_iter().map(Value::dotted).collect()));
        }
        let mut all = vec![Vec::new()];
        for set in sets {
            let with = |one: &Vec<Value>, value: &Value| [one.as_slice(), std::slice::from_ref(value)].concat();
            all = all.iter().flat_map(|one| set.iter().map(move |value| with(one, value))).collect();
        }
        Ok(Arc::new(all.into_iter().map(Value::tuple).collect()))
    }
}
