//! Variables of functions by name: what lies on a stack.
//!
//! Recordings say where the frame of a function lay, for each call path once. When something on a stack is used, its owner is in
//! one of its call paths, and the frame around the address is that of one of the functions in it. Limit: a function that
//! allocates on its stack, or is called with arguments there, may have its next frame elsewhere; a name is given only if all
//! uses by other threads that are looked at agree on it, or all by the owner where there are no others.

use crate::findings::describe::Describer;
use crate::findings::members::{ASKED, LOOKED_AT, Used, uses};
use crate::findings::symbols::Symbols;
use rashomon_event::{Address, ContextId, EventIndex, ObjectKind, SiteId, ThreadId};
use rashomon_symbolize::{Local, StackFrame};
use std::collections::HashMap;

/// What was found out before.
pub(crate) type KnownLocals = HashMap<(Address, Used), Option<String>>;

impl<S: Symbols + ?Sized> Describer<'_, S> {
    /// `totals[3] of main`, of what lies on a stack; `totals[3] of work (thread 2)` on that of a thread that was created.
    pub(crate) fn local_at(&self, address: Address, what: Used) -> Option<String> {
        let object = self.object(address)?;
        let ObjectKind::Stack { thread: owner } = object.kind else { return None };
        if self.frames.is_empty() {
            return None;
        }
        if let Some(known) = self.locals.borrow().get(&(address, what)) {
            return known.clone();
        }
        let machine = object.machine_base.wrapping_add(address.0 - object.base.0);
        // What other threads use is shared, and matters here; what lay there before or behind it is another variable.
        let mut found: Vec<Local> = Vec::new();
        for by_others in [true, false] {
            for moment in self.moments(address, what, (owner, by_others)) {
                if let Some(local) = self.local_in(owner, moment, machine)
                    && !found.contains(&local)
                {
                    found.push(local);
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        let words = |local: Local| {
            let thread = self.trace().thread(owner);
            let of = if thread.parent.is_some() { format!(" ({})", thread.path.words()) } else { String::new() };
            format!("{} of {}{of}", local.name, local.function)
        };
        let name = if found.len() == 1 { found.pop().map(words) } else { None };
        self.locals.borrow_mut().insert((address, what), name.clone());
        name
    }

    /// When it is used, a few times, by its owner or by others: the events; `None`: the end.
    fn moments(&self, address: Address, what: Used, (owner, by_others): (ThreadId, bool)) -> Vec<Option<EventIndex>> {
        let trace = self.trace();
        let lock = match what {
            Used::Lock(identity) => Some(identity),
            Used::Bytes(_) => None,
        };
        let wanted = lock.unwrap_or(address);
        let at_end = self.about_to.iter().any(|(used, _, _)| *used == wanted).then_some(None);
        let is_wanted = |index: &EventIndex| {
            let event = trace.event(*index);
            (event.thread != owner) == by_others && uses(&event, address, lock)
        };
        let events = trace.indices().take(LOOKED_AT).filter(is_wanted);
        at_end.into_iter().chain(events.take(ASKED).map(Some)).collect()
    }

    /// The variable of the owner's functions that lies there, at that moment.
    fn local_in(&self, owner: ThreadId, moment: Option<EventIndex>, machine: u64) -> Option<Local> {
        let trace = self.trace();
        let order = trace.program_order();
        // What it did last, or does itself.
        let until = moment.map_or(EventIndex(u32::MAX), |moment| EventIndex(moment.0.saturating_add(1)));
        let last = order.before(owner.index(), until).checked_sub(1)?;
        let last = trace.event(order.at(owner.index(), last));
        let (mut site, mut context): (SiteId, ContextId) = (last.site, last.context);
        for _ in 0..trace.contexts.len() {
            if context == ContextId::ROOT {
                break;
            }
            let frame = self.frames.get(&(owner, context));
            if let Some(frame) = frame.filter(|frame| (frame.stack_pointer..frame.address).contains(&machine)) {
                let code = trace.site(site);
                let module = trace.modules.get(code.module? as usize)?;
                let frame = StackFrame { address: frame.address, stack_pointer: frame.stack_pointer };
                return self.symbols().local(module, code.offset.saturating_sub(1), frame, machine);
            }
            let node = &trace.contexts[context.index()];
            (site, context) = (node.call, node.parent);
        }
        None
    }
}
