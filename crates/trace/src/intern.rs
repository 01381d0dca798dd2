//! Code addresses and call contexts, numbered over all threads.

use rashomon_event::{Context, ContextId, ModuleInfo, Site, SiteId};
use rustc_hash::FxHashMap;

const CACHE_SLOTS: usize = 4096;

/// Sites in order of first use.
#[derive(Debug)]
pub struct Sites {
    pub list: Vec<Site>,
    by_address: FxHashMap<u64, SiteId>,
    /// Direct-mapped: address and its id. Address `u64::MAX` is an empty slot.
    cache: Vec<(u64, SiteId)>,
    /// Modules that are loaded now: start, end, index.
    loaded: Vec<(u64, u64, u32)>,
    bases: Vec<u64>,
    /// From 1; with the next one addresses may have other ids.
    version: u32,
}

impl Default for Sites {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            by_address: FxHashMap::default(),
            cache: vec![(u64::MAX, SiteId(0)); CACHE_SLOTS],
            loaded: Vec::new(),
            bases: Vec::new(),
            version: 1,
        }
    }
}

impl Sites {
    /// Code addresses inside the module belong to it from now on. `index`: its place among all modules, which come in order.
    pub fn load(&mut self, index: u32, module: &ModuleInfo) {
        if self.bases.len() <= index as usize {
            self.bases.resize(index as usize + 1, 0);
        }
        self.bases[index as usize] = module.base;
        if self.loaded.contains(&(module.start, module.end, index)) {
            return;
        }
        let overlaps = |&(start, end, _): &(u64, u64, u32)| start < module.end && module.start < end;
        if self.loaded.iter().any(overlaps) {
            self.loaded.retain(|other| !overlaps(other));
        }
        self.loaded.push((module.start, module.end, index));
        self.loaded.sort_unstable();
        self.by_address.retain(|address, _| !(module.start..module.end).contains(address));
        self.cache.fill((u64::MAX, SiteId(0)));
        self.version += 1;
    }

    pub const fn version(&self) -> u32 {
        self.version
    }

    #[inline]
    pub fn intern(&mut self, address: u64) -> SiteId {
        let slot = (address ^ (address >> 12)) as usize % CACHE_SLOTS;
        let (cached, id) = self.cache[slot];
        if cached == address {
            return id;
        }
        let id = self.intern_slowly(address);
        self.cache[slot] = (address, id);
        id
    }

    fn intern_slowly(&mut self, address: u64) -> SiteId {
        if let Some(&id) = self.by_address.get(&address) {
            return id;
        }
        let behind = self.loaded.partition_point(|&(start, _, _)| start <= address);
        let module =
            behind.checked_sub(1).map(|at| self.loaded[at]).filter(|&(_, end, _)| address < end).map(|(_, _, index)| index);
        let base = module.map_or(0, |index| self.bases[index as usize]);
        let id = SiteId(self.list.len() as u32);
        self.list.push(Site { address, module, offset: address.wrapping_sub(base) });
        self.by_address.insert(address, id);
        id
    }
}

/// The calling-context tree over all threads: equal chains of call sites are one context.
#[derive(Debug)]
pub struct Contexts {
    pub list: Vec<Context>,
    by_chain: FxHashMap<(u32, u32), ContextId>,
}

impl Default for Contexts {
    fn default() -> Self {
        Self { list: vec![Context { parent: ContextId::ROOT, call: SiteId(0) }], by_chain: FxHashMap::default() }
    }
}

impl Contexts {
    pub fn intern(&mut self, parent: ContextId, call: SiteId) -> ContextId {
        *self.by_chain.entry((parent.0, call.0)).or_insert_with(|| {
            self.list.push(Context { parent, call });
            ContextId(self.list.len() as u32 - 1)
        })
    }
}
