//! The part of the `control` file that asks for provocation.

use crate::control::Tables;
use crate::error::ControlError;
use rashomon_abi::control::{ANY_THREAD, HEAD_WORDS, field, first};
use rashomon_event::schedule::ScheduleModule;
use rashomon_event::{CodePlace, Descriptor, First, ThreadPath};
use std::time::Duration;

/// A descriptor, and how often its thread is held there in one execution. 0: its matches are counted only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    pub descriptor: Descriptor,
    pub holds: u64,
}

/// What one execution is to provoke.
#[derive(Clone, Debug)]
pub struct ProvokeRequest<'a> {
    pub modules: &'a [ScheduleModule],
    pub watched: &'a [Watched],
    /// Pairs of sites whose catch is known: they end no hold.
    pub known: &'a [[CodePlace; 2]],
    /// Longest time that a thread is held, and that all holds of the execution may last together.
    pub hold: Duration,
    pub holds: Duration,
    /// Other threads begin once this one was held, is blocked, or has ended.
    pub favoured: Option<&'a ThreadPath>,
    pub first: First,
    /// What orders threads is recorded, and the first catch ends the process, with both threads at their accesses.
    pub recorded: bool,
}

impl Tables {
    pub(crate) fn of_provocation(request: &ProvokeRequest<'_>, head: &mut [u64; HEAD_WORDS]) -> Result<Self, ControlError> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut tables = Self::default();
        request.modules.iter().for_each(|module| tables.module(&module.path));
        tables.thread(&ThreadPath::default());
        for Watched { descriptor, holds } in request.watched {
            let thread = descriptor.thread.as_ref().map_or(ANY_THREAD, |path| tables.thread(path));
            let [module, offset] = tables.code_place(descriptor.site)?;
            let first_frame = tables.frames.len() as u64;
            for &frame in &descriptor.frames {
                let words = tables.code_place(frame)?;
                tables.frames.push(words);
            }
            let frames = descriptor.frames.len() as u64;
            let ordinal = descriptor.ordinal;
            tables.descriptors.push([thread, descriptor.identity, module, offset, first_frame, frames, ordinal, *holds]);
        }
        for [one, other] in request.known {
            let (one, other) = (tables.code_place(*one)?, tables.code_place(*other)?);
            tables.known.push([one[0], one[1], other[0], other[1]]);
        }
        head[field::HOLD_TIME] = nanoseconds(request.hold);
        head[field::HOLDS_TIME] = nanoseconds(request.holds);
        head[field::FAVOURED] = request.favoured.map_or(0, |path| tables.thread(path) + 1);
        head[field::FIRST] = match request.first {
            First::Either => first::EITHER,
            First::Held => first::HELD,
            First::Arrived => first::ARRIVED,
        };
        tables.check_lengths()?;
        Ok(tables)
    }
}
