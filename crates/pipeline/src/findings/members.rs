//! Members of blocks by name, told by the code that uses them.
//!
//! A block has no type in a recording. The functions that use it have: what they can reach it through. The innermost one that
//! knows a structure of the block's size names the place in it, if all who use the place and know a name agree.

use crate::findings::describe::Describer;
use crate::findings::symbols::Symbols;
use rashomon_event::finding::Origin;
use rashomon_event::{Address, ContextId, Event, EventIndex, EventKind, Object, ObjectKind, SiteId};
use rashomon_symbolize::InBlock;
use std::collections::HashMap;

/// Places in the code that are asked.
pub(crate) const ASKED: usize = 8;
/// Events that are looked at for them.
pub(crate) const LOOKED_AT: usize = 2_000_000;
/// Frames of a stack that are asked.
const FRAMES: usize = 6;

/// What was found out before, by address: descriptions come to the same places again and again.
pub(crate) type Known = HashMap<(Address, Used), Option<String>>;

/// As what a place is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Used {
    /// What threads wait for, by its identity.
    Lock(Address),
    /// So many bytes.
    Bytes(u64),
}

impl<S: Symbols + ?Sized> Describer<'_, S> {
    /// `Stats::mutex_`, of what lies at an address within a block.
    pub(crate) fn member_of_block(&self, object: &Object, address: Address, what: Used) -> Option<String> {
        if !matches!(object.kind, ObjectKind::Heap { .. }) {
            return None;
        }
        if let Some(known) = self.members.borrow().get(&(address, what)) {
            return known.clone();
        }
        let (size, into) = (object.size - object.spare, address.0 - object.base.0);
        let mut names: Vec<String> = Vec::new();
        for (site, context) in self.users(object, address, what) {
            if let Some(name) = self.called_by(site, context, (size, into), what)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        let name = (names.len() == 1).then(|| names.swap_remove(0));
        self.members.borrow_mut().insert((address, what), name.clone());
        name
    }

    /// Who uses what lies there, a few of them.
    fn users(&self, object: &Object, address: Address, what: Used) -> Vec<(SiteId, ContextId)> {
        let trace = self.trace();
        let first = object.born.map_or(0, EventIndex::index);
        let lock = match what {
            Used::Lock(identity) => Some(identity),
            Used::Bytes(_) => None,
        };
        let wanted = lock.unwrap_or(address);
        let about_to = self.about_to.iter().filter(|(used, _, _)| *used == wanted);
        let mut users: Vec<_> = about_to.map(|(_, site, context)| (*site, *context)).collect();
        for event in trace.events.iter().skip(first).take(LOOKED_AT) {
            if uses(&event, address, lock) && !users.contains(&(event.site, event.context)) {
                users.push((event.site, event.context));
                if users.len() == ASKED {
                    break;
                }
            }
        }
        users
    }

    /// What the innermost function calls it that has a name for it, up to the first that the user wrote: who calls that one may
    /// well use another block of the same size. But where that one knows a part of the block, such as a member of a member, its
    /// callers may know the whole, and their name has to lead through that part. `None`, too, where one has several.
    fn called_by(&self, site: SiteId, context: ContextId, block: (u64, u64), what: Used) -> Option<String> {
        let trace = self.trace();
        let used = match what {
            Used::Lock(_) => None,
            Used::Bytes(bytes) => Some(bytes),
        };
        let mut part: Option<Vec<String>> = None;
        for site in std::iter::once(site).chain(trace.callers(context)).take(FRAMES) {
            let is_the_users = self.site(site).iter().any(|frame| frame.origin() == Origin::Program);
            let site = trace.site(site);
            let module = site.module.and_then(|module| trace.modules.get(module as usize))?;
            let InBlock { mut names, parts } =
                self.symbols().members_of_block(module, site.offset.saturating_sub(1), block, used);
            if let Some(part) = &part {
                names.retain(|name| name.through.iter().any(|structure| part.contains(structure)));
            }
            match names.len() {
                0 if is_the_users && part.is_none() && parts.is_empty() => return None,
                0 if is_the_users && part.is_none() => part = Some(parts),
                0 => {}
                1 => return names.pop().map(|name| name.name),
                _ => return None,
            }
        }
        None
    }
}

/// Whether an event uses the lock, or without one what lies at the address.
pub(crate) fn uses(event: &Event, address: Address, lock: Option<Address>) -> bool {
    match event.kind {
        EventKind::Acquire { lock: used, .. }
        | EventKind::Request { lock: used, .. }
        | EventKind::Blocked { on: used }
        | EventKind::WaitBegin { condition: used, .. }
        | EventKind::Signal { condition: used, .. } => Some(used) == lock,
        _ => lock.is_none() && event.access().is_some_and(|access| access.address == address),
    }
}
