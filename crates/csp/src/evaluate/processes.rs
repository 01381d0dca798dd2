//! Terms of process expressions, and of instances of definitions.

use super::{ARGUMENTS, Environment, Evaluator, Found, INSTANCES, Instance, NAME, Value, shown};
use crate::builtin::Builtin;
use crate::error::Place;
use crate::syntax::{Expression, Kind, Operator, Qualifier, Replicated};
use crate::term::{Event, Events, Name, Renaming, Term, TermId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl<'e> Evaluator<'e> {
    pub(super) fn term(&mut self, expression: &'e Expression, environment: &Environment) -> Found<TermId> {
        let place = expression.place;
        match &expression.kind {
            Kind::Stop => self.make(Term::Stop, place),
            Kind::Skip => self.make(Term::Skip, place),
            Kind::Prefix(prefix) => self.prefix(prefix, environment),
            Kind::Guard(both) => match self.truth(&both[0], environment)? {
                true => self.process(&both[1], environment),
                false => self.make(Term::Stop, place),
            },
            Kind::Binary(operator, both) => {
                let (one, other) = (self.process(&both[0], environment)?, self.process(&both[1], environment)?);
                self.operator(*operator, one, other, place)
            }
            Kind::Parallel(parts) => {
                let one = self.process(&parts[0], environment)?;
                let shared = self.event_set(&parts[1], environment)?;
                let other = self.process(&parts[2], environment)?;
                self.make(Term::Parallel(one, shared, other), place)
            }
            Kind::Alphabetised(parts) => {
                let one = self.process(&parts[0], environment)?;
                let of_one = self.event_set(&parts[1], environment)?;
                let of_other = self.event_set(&parts[2], environment)?;
                let other = self.process(&parts[3], environment)?;
                self.alphabetised(vec![(one, of_one), (other, of_other)], place)
            }
            Kind::Hide(both) => {
                let process = self.process(&both[0], environment)?;
                let hidden = self.event_set(&both[1], environment)?;
                self.make(Term::Hide(process, hidden), place)
            }
            Kind::Rename(process, pairs, qualifiers) => {
                let process = self.process(process, environment)?;
                let renaming = self.renaming(pairs, qualifiers, environment)?;
                self.make(Term::Rename(process, renaming), place)
            }
            Kind::Replicated(how, qualifiers, body) => self.replicated(place, how, qualifiers, body, environment),
            _ => Err(self.program.error(place, "a process", String::from("a value"))),
        }
    }

    fn event_set(&mut self, of: &'e Expression, environment: &Environment) -> Found<Events> {
        let set = self.set(of, environment)?;
        self.events(&set, of.place)
    }

    fn operator(&mut self, operator: Operator, one: TermId, other: TermId, place: Place) -> Found<TermId> {
        let term = match operator {
            Operator::External => Term::External(one, other),
            Operator::Internal => Term::Internal(one, other),
            Operator::Interrupt => Term::Interrupt(one, other),
            Operator::Sequence => Term::Sequence(one, other),
            // What may go away by itself.
            Operator::Sliding => {
                let stop = self.make(Term::Stop, place)?;
                let one = self.make(Term::Internal(one, stop), place)?;
                Term::External(one, other)
            }
            _ => Term::Parallel(one, Events::default(), other),
        };
        self.make(term, place)
    }

    /// In a balanced tree; `None` of nothing.
    pub(super) fn combined(
        &mut self,
        mut all: Vec<TermId>,
        place: Place,
        with: impl Fn(TermId, TermId) -> Term,
    ) -> Found<Option<TermId>> {
        while all.len() > 1 {
            let mut half = Vec::with_capacity(all.len().div_ceil(2));
            for pair in all.chunks(2) {
                half.push(if let [one, other] = *pair { self.make(with(one, other), place)? } else { pair[0] });
            }
            all = half;
        }
        Ok(all.pop())
    }

    /// Each does events of its own alphabet only, and those of several alphabets together.
    fn alphabetised(&mut self, all: Vec<(TermId, Events)>, place: Place) -> Found<TermId> {
        let nobody = self.make(Term::Done, place)?;
        let every: BTreeSet<Event> = (0..self.processes.events.len() as u32).map(Event).collect();
        let mut now = Vec::new();
        for (process, alphabet) in all {
            let others = Events::from(&every - &*alphabet);
            now.push((self.make(Term::Parallel(process, others, nobody), place)?, alphabet));
        }
        while now.len() > 1 {
            let mut half = Vec::new();
            for pair in now.chunks(2) {
                half.push(match pair {
                    [(one, left), (other, right)] => {
                        let shared = Events::from(&**left & &**right);
                        (self.make(Term::Parallel(*one, shared, *other), place)?, Events::from(&**left | &**right))
                    }
                    _ => pair[0].clone(),
                });
            }
            now = half;
        }
        match now.pop() {
            Some((process, _)) => Ok(process),
            None => self.make(Term::Skip, place),
        }
    }

    fn renaming(
        &mut self,
        pairs: &'e [[Expression; 2]],
        qualifiers: &'e [Qualifier],
        environment: &Environment,
    ) -> Found<Renaming> {
        let mut renaming: BTreeMap<Event, BTreeSet<Event>> = BTreeMap::new();
        self.each(qualifiers, environment, &mut |evaluator, environment| {
            for [from, to] in pairs {
                let (old, new) = (evaluator.evaluate(from, environment)?, evaluator.evaluate(to, environment)?);
                evaluator.beginning(&new, to.place)?;
                for event in evaluator.productions(&old, from.place)? {
                    let called = Value::dotted([new.parts(), &event[old.parts().len()..]].concat());
                    let called = evaluator.event(&called, to.place)?;
                    let event = evaluator.event(&Value::dotted(event), from.place)?;
                    renaming.entry(event).or_default().insert(called);
                }
            }
            Ok(())
        })?;
        Ok(Renaming(Arc::new(renaming)))
    }

    fn replicated(
        &mut self,
        place: Place,
        how: &'e Replicated,
        qualifiers: &'e [Qualifier],
        body: &'e Expression,
        environment: &Environment,
    ) -> Found<TermId> {
        let mut all = Vec::new();
        let mut alphabets = Vec::new();
        self.each(qualifiers, environment, &mut |evaluator, environment| {
            if let Replicated::Alphabets(alphabet) = how {
                alphabets.push(evaluator.event_set(alphabet, environment)?);
            }
            all.push(evaluator.process(body, environment)?);
            evaluator.bounded(all.len(), place)
        })?;
        let together = match how {
            Replicated::Alphabets(_) => return self.alphabetised(all.into_iter().zip(alphabets).collect(), place),
            Replicated::Sharing(set) => {
                let shared = self.event_set(set, environment)?;
                self.combined(all, place, |one, other| Term::Parallel(one, shared.clone(), other))?
            }
            Replicated::With(Operator::Sequence) => {
                let mut after = None;
                for one in all.into_iter().rev() {
                    after = Some(match after {
                        None => one,
                        Some(after) => self.make(Term::Sequence(one, after), place)?,
                    });
                }
                after
            }
            Replicated::With(Operator::External) => match self.combined(all, place, Term::External)? {
                None => return self.make(Term::Stop, place),
                choice => choice,
            },
            Replicated::With(Operator::Internal) => match self.combined(all, place, Term::Internal)? {
                None => return Err(self.program.error(place, "something to choose from", String::from("nothing"))),
                choice => choice,
            },
            Replicated::With(_) => self.combined(all, place, |one, other| Term::Parallel(one, Events::default(), other))?,
        };
        match together {
            Some(together) => Ok(together),
            None => self.make(Term::Skip, place),
        }
    }

    /// A call.
    pub(super) fn instance(&mut self, instance: Instance, place: Place) -> Found<TermId> {
        if let Some(&name) = self.unfolding.names.get(&instance) {
            return self.make(Term::Call(name), place);
        }
        let number = self.processes.definitions.len();
        if number >= INSTANCES {
            return self.too_much(place, &format!("at most {INSTANCES} instances of definitions"));
        }
        self.unfolding.arguments += instance.size();
        if self.unfolding.arguments > ARGUMENTS {
            return self.too_much(place, &format!("at most {ARGUMENTS} values in the arguments of all instances"));
        }
        let mut text = match &instance {
            Instance::Call(closure, arguments) => {
                let mut text = self.program.name(self.program.definition(closure.definition).symbol).to_owned();
                let arguments: Vec<_> = arguments.iter().take(NAME).map(|argument| shown(self.program, argument)).collect();
                if !arguments.is_empty() {
                    text = format!("{text}({})", arguments.join(","));
                }
                text
            }
            Instance::Builtin(builtin, of) => format!("{}({})", builtin.name(), shown(self.program, of)),
        };
        if let Some((end, _)) = text.char_indices().nth(NAME) {
            text.truncate(end);
        }
        let name = Name(number as u32);
        let stop = self.make(Term::Stop, place)?;
        self.processes.definitions.push((text, stop));
        self.unfolding.names.insert(instance.clone(), name);
        self.unfolding.pending.insert(name, instance);
        self.make(Term::Call(name), place)
    }

    /// What an instance does.
    pub(super) fn body(&mut self, instance: &Instance, name: Name) -> Found<TermId> {
        match instance {
            Instance::Call(closure, arguments) => {
                let definition = self.program.definition(closure.definition);
                match self.call(closure, arguments, definition.place)? {
                    Value::Process(process) => Ok(process),
                    other => {
                        let place = definition.clauses.first().map_or(definition.place, |clause| clause.body.place);
                        self.wrong(place, "a process", &other)
                    }
                }
            }
            Instance::Builtin(builtin, of) => {
                let place = Place { line: 1, column: 1, ..Place::default() };
                let again = self.make(Term::Call(name), place)?;
                if *builtin == Builtin::Diverge {
                    return self.make(Term::Internal(again, again), place);
                }
                let Value::Set(events) = of else { return self.wrong(place, "a set of events", of) };
                let stop = self.make(Term::Stop, place)?;
                let mut all = Vec::new();
                for &event in self.events(events, place)?.iter() {
                    all.push(self.make(Term::Prefix(event, again), place)?);
                }
                let any = self.combined(all, place, Term::External)?.unwrap_or(stop);
                if *builtin == Builtin::Run {
                    return Ok(any);
                }
                self.make(Term::Internal(stop, any), place)
            }
        }
    }
}
