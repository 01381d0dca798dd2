//! Names of objects for ids: the same in every execution, so that what is forced can be compared with what was predicted.
//!
//! No name holds an address. Static data is called by its symbol (without one by its place in the module), blocks, mappings and
//! descriptors by the place in the program's own sources that made them, a thread's memory by the thread. A lock is called by
//! that and by where in it it lies; what a race touches by the object alone, whichever part of it is touched, as loops race on
//! all elements of an array. Limit: blocks made by one call at one place have one name. The subject of a finding is then that of
//! the execution that showed it.

use crate::findings::describe::Describer;
use crate::findings::identity::place_key;
use crate::findings::symbols::Symbols;
use rashomon_event::{Address, ContextId, Object, ObjectKind, SiteId};

/// Callers in the program's own sources by which a lock's block is called, where a function of the program makes all locks.
const MAKERS: usize = 4;

impl<S: Symbols + ?Sized> Describer<'_, S> {
    /// The name of what a race touches; `None`: it has none that tells it from others.
    pub fn name_of_data(&self, address: Address) -> Option<String> {
        let object = self.object(address)?;
        match object.kind {
            ObjectKind::Global { .. } => self.variable_at(object, address).map(|(name, _)| name),
            ObjectKind::Heap { site, .. } | ObjectKind::Mapping { site, .. } | ObjectKind::Descriptor { site, .. } => {
                let (site, context) = self.maker(object, site);
                Some(format!("made at {}", place_key(self.trace(), self.symbols(), site, context)))
            }
            ObjectKind::Stack { .. } | ObjectKind::Tls { .. } | ObjectKind::Unknown => None,
        }
    }

    /// The name of a lock, or of what else threads wait for.
    pub fn name_of_lock(&self, identity: Address) -> Option<String> {
        let at = self.data_of(identity)?;
        let object = self.object(at)?;
        let into = at.0 - object.base.0;
        match object.kind {
            ObjectKind::Global { module } => Some(match self.variable_at(object, at) {
                Some((name, into)) => format!("{name}+{into}"),
                None => {
                    let module = self.trace().modules.get(module as usize)?;
                    let offset = object.machine_base.wrapping_sub(module.base).wrapping_add(into);
                    let file = module.path.rsplit('/').next().unwrap_or(&module.path);
                    format!("{file}+{offset:#x}")
                }
            }),
            ObjectKind::Heap { site, .. } | ObjectKind::Mapping { site, .. } | ObjectKind::Descriptor { site, .. } => {
                let (site, context) = self.maker(object, site);
                let places = crate::findings::identity::own_places(self.trace(), self.symbols(), site, context, MAKERS);
                Some(format!("{into} into what is made at {}", places.join(" in ")))
            }
            // Where in it is decided by what lies there before: the program's arguments, for one.
            ObjectKind::Stack { thread } | ObjectKind::Tls { thread } => {
                Some(format!("memory of thread {}", self.trace().threads.get(thread.index())?.path))
            }
            ObjectKind::Unknown => None,
        }
    }

    /// The call that made a block.
    fn maker(&self, object: &Object, site: SiteId) -> (SiteId, ContextId) {
        object.born.map_or((site, ContextId::ROOT), |event| {
            let event = self.trace().event(event);
            (event.site, event.context)
        })
    }
}
