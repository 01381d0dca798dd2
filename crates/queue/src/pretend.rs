//! An exchange in memory, which can lose answers, units and objects on demand.

use crate::error::QueueError;
use crate::exchange::{Exchange, Taken};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Clone, Default)]
pub struct Pretend(Arc<Mutex<State>>);

#[derive(Default)]
pub struct State {
    pub objects: BTreeMap<String, Vec<u8>>,
    pub units: Vec<Queued>,
    published: BTreeSet<(String, u32, u32)>,
    outcomes: BTreeMap<(String, u32), Vec<u8>>,
    /// In which they came, those that were taken back included.
    order: Vec<(String, u32)>,
    jobs: BTreeSet<String>,
    announced: Option<String>,
    /// So many archives that are kept from now on are damaged.
    pub damaging: u32,
    /// Every so many calls, the answer is lost: before the call has its effect, and behind it, in turns.
    pub losing: Option<u32>,
    calls: u32,
    /// How often a lease was renewed.
    pub renewed: u32,
    /// How often a worker asked for a unit, and there was none.
    pub asked_in_vain: u32,
}

#[derive(Clone)]
pub struct Queued {
    pub job: String,
    pub number: u32,
    message: Vec<u8>,
    /// Of the publication.
    id: usize,
    deliveries: u64,
    /// By which delivery it is with a worker.
    taken: Option<u64>,
}

fn lost() -> QueueError {
    QueueError::NoAnswer { reason: "it was lost".into() }
}

impl Pretend {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// All leases run out.
    pub fn expire(&self) {
        self.state().units.iter_mut().for_each(|unit| unit.taken = None);
    }

    fn call<T>(&self, effect: impl FnOnce(&mut State) -> Result<T, QueueError>) -> Result<T, QueueError> {
        let mut state = self.state();
        state.calls += 1;
        let loses = state.losing.is_some_and(|every| state.calls.is_multiple_of(every));
        if loses && state.calls.is_multiple_of(2) {
            return Err(lost());
        }
        let result = effect(&mut state)?;
        if loses { Err(lost()) } else { Ok(result) }
    }
}

impl Exchange for Pretend {
    fn open_job(&self, job: &str) -> Result<(), QueueError> {
        self.call(|state| {
            state.jobs.insert(job.into());
            Ok(())
        })
    }

    fn is_open(&self, job: &str) -> Result<bool, QueueError> {
        self.call(|state| Ok(state.jobs.contains(job)))
    }

    fn close_job(&self, job: &str) -> Result<(), QueueError> {
        self.call(|state| {
            state.jobs.remove(job);
            state.units.retain(|unit| unit.job != job);
            state.outcomes.retain(|(other, _), _| other != job);
            Ok(())
        })
    }

    fn announce(&self, job: &str, more: bool) -> Result<(), QueueError> {
        self.call(|state| {
            if more {
                state.announced = Some(job.into());
            } else if state.announced.as_deref() == Some(job) {
                state.announced = None;
            }
            Ok(())
        })
    }

    fn is_announced(&self) -> Result<bool, QueueError> {
        self.call(|state| Ok(state.announced.is_some()))
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), QueueError> {
        self.call(|state| {
            let mut bytes = bytes.to_vec();
            if state.damaging > 0 && name.split('-').count() == 3 {
                state.damaging -= 1;
                bytes[0] ^= 1;
            }
            state.objects.insert(name.into(), bytes);
            Ok(())
        })
    }

    fn fetch(&self, name: &str, most: u64) -> Result<Vec<u8>, QueueError> {
        self.call(|state| {
            let bytes = state.objects.get(name).cloned().ok_or_else(|| QueueError::Missing { what: name.into() })?;
            if bytes.len() as u64 > most { Err(QueueError::TooLarge(name.into())) } else { Ok(bytes) }
        })
    }

    fn discard(&self, name: &str) -> Result<(), QueueError> {
        self.call(|state| {
            state.objects.remove(name);
            Ok(())
        })
    }

    fn publish(&self, job: &str, number: u32, attempt: u32, message: &[u8]) -> Result<(), QueueError> {
        self.call(|state| {
            if state.published.insert((job.into(), number, attempt)) {
                let (message, id) = (message.to_vec(), state.published.len());
                state.units.push(Queued { job: job.into(), number, message, id, deliveries: 0, taken: None });
            }
            Ok(())
        })
    }

    fn queued(&self, job: &str) -> Result<BTreeSet<u32>, QueueError> {
        self.call(|state| Ok(state.units.iter().filter(|unit| unit.job == job).map(|unit| unit.number).collect()))
    }

    fn take(&self, _: Duration) -> Result<Option<Box<dyn Taken>>, QueueError> {
        let found = self.call(|state| {
            let Some(unit) = state.units.iter_mut().find(|unit| unit.taken.is_none()) else {
                state.asked_in_vain += 1;
                return Ok(None);
            };
            unit.deliveries += 1;
            unit.taken = Some(unit.deliveries);
            Ok(Some(unit.clone()))
        })?;
        if found.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(found.map(|unit| -> Box<dyn Taken> { Box::new(Held { pretend: self.clone(), unit }) }))
    }

    fn conclude(&self, job: &str, number: u32, outcome: &[u8]) -> Result<bool, QueueError> {
        self.call(|state| {
            let is_first = !state.outcomes.contains_key(&(job.into(), number));
            if is_first {
                state.order.push((job.into(), number));
                state.outcomes.insert((job.into(), number), outcome.to_vec());
            }
            Ok(is_first)
        })
    }

    fn concluded(&self, job: &str) -> Result<BTreeSet<u32>, QueueError> {
        self.call(|state| Ok(state.outcomes.keys().filter(|(other, _)| other == job).map(|(_, number)| *number).collect()))
    }

    fn concluded_after(&self, job: &str, position: u64) -> Result<(BTreeSet<u32>, u64), QueueError> {
        self.call(|state| {
            let new = state.order.iter().skip(position as usize).filter(|(other, _)| other == job);
            Ok((new.map(|(_, number)| *number).collect(), state.order.len() as u64))
        })
    }

    fn outcome(&self, job: &str, number: u32) -> Result<Option<Vec<u8>>, QueueError> {
        self.call(|state| Ok(state.outcomes.get(&(job.into(), number)).cloned()))
    }

    fn reopen(&self, job: &str, number: u32) -> Result<(), QueueError> {
        self.call(|state| {
            state.outcomes.remove(&(job.into(), number));
            Ok(())
        })
    }
}

struct Held {
    pretend: Pretend,
    unit: Queued,
}

impl Held {
    fn is_mine(&self, unit: &Queued) -> bool {
        unit.id == self.unit.id
    }
}

impl Taken for Held {
    fn message(&self) -> &[u8] {
        &self.unit.message
    }

    fn deliveries(&self) -> u64 {
        self.unit.deliveries
    }

    fn renew(&self) -> Result<(), QueueError> {
        self.pretend.state().renewed += 1;
        Ok(())
    }

    fn done(&self) -> Result<(), QueueError> {
        self.pretend.call(|state| {
            state.units.retain(|unit| !self.is_mine(unit));
            Ok(())
        })
    }

    fn give_back(&self, _: Duration) -> Result<(), QueueError> {
        self.pretend.call(|state| {
            for unit in state.units.iter_mut().filter(|unit| self.is_mine(unit)) {
                unit.taken = None;
            }
            Ok(())
        })
    }
}
