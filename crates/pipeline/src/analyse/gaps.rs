//! What recorded calls into unseen code may have ordered: the calls of a recording become orders that predictions keep.

use crate::analyse::calls::Calls;
use crate::analyse::libraries::is_trusted;
use crate::analyse::modules::{file_name, is_instrumented};
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use rashomon_event::{Address, Gap, ObjectKind, Trace, path_of};
use rashomon_trace::LoadedTrace;
use std::collections::{BTreeMap, BTreeSet};

/// Where the variables of a module lie: first offset and first offset behind, sorted. Empty where it has no symbols.
type Variables = Vec<(u64, u64)>;

/// Fills in [`Trace::kept`]. `trusted`: see [`heeded`].
pub fn heed(loaded: &mut LoadedTrace, trusted: &[String]) {
    let gaps: Vec<Gap> = heeded(loaded, trusted).into_iter().map(|(_, gap)| gap).collect();
    loaded.trace.kept = rashomon_order::kept(&loaded.trace, &gaps);
}

/// The calls that may order something, by their places in [`Trace::gaps`], with whole variables for what they reach. `trusted`:
/// see [`is_trusted`]; calls of such libraries order nothing, nor do those that it leaves out ([`Calls`]).
pub fn heeded(loaded: &LoadedTrace, trusted: &[String]) -> Vec<(usize, Gap)> {
    let (trace, mut variables) = (&loaded.trace, BTreeMap::new());
    let mut heeded: Vec<(usize, Gap)> = counting(trace, trusted).map(|(at, gap)| (at, gap.clone())).collect();
    for range in heeded.iter_mut().flat_map(|(_, gap)| &mut gap.reach) {
        *range = whole_variable(trace, &mut variables, *range);
    }
    heeded
}

/// The calls that may order something, by their places.
fn counting<'a>(trace: &'a Trace, trusted: &[String]) -> impl Iterator<Item = (usize, &'a Gap)> {
    let orders: Vec<bool> = trace.modules.iter().map(|module| !is_trusted(&module.path, trusted)).collect();
    let may_order = move |gap: &Gap| gap.module.is_none_or(|module| orders.get(module as usize).copied().unwrap_or(true));
    let mut calls = Calls::of(trusted);
    trace.gaps.iter().enumerate().filter(move |(_, gap)| may_order(gap) && calls.count(trace, gap))
}

/// Names of the files of libraries that calls which may order something went to, sorted: those that only other libraries call
/// are not among them.
pub fn libraries(trace: &Trace, trusted: &[String]) -> Vec<String> {
    let modules = counting(trace, trusted).filter_map(|(_, gap)| trace.modules.get(gap.module? as usize));
    let names: BTreeSet<&str> = modules.map(|module| file_name(&module.path)).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The runtime does not know how large static variables are, and tells so many bytes behind an address: of an instrumented module
/// those of the variable are meant.
fn whole_variable(trace: &Trace, known: &mut BTreeMap<u32, Variables>, (start, bytes): (Address, u64)) -> (Address, u64) {
    let mut whole = || {
        let object = &trace.objects[trace.object_at(start)?.index()];
        let ObjectKind::Global { module } = object.kind else { return None };
        let info = trace.modules.get(module as usize)?;
        let variables = known.entry(module).or_insert_with(|| variables_of(&info.path));
        let offset = object.machine_base.wrapping_sub(info.base).wrapping_add(start.0 - object.base.0);
        let &(first, behind) = variables.get(variables.partition_point(|&(first, _)| first <= offset).checked_sub(1)?)?;
        (offset < behind).then(|| (Address(start.0 - (offset - first)), behind - first))
    };
    whole().unwrap_or((start, bytes))
}

fn variables_of(path: &str) -> Variables {
    let path = path_of(path);
    if !is_instrumented(&path) {
        return Variables::new();
    }
    let all = rashomon_symbolize::with_object(&path, |file| {
        let named = file.symbols().chain(file.dynamic_symbols());
        let variables = named.filter(|it| it.is_definition() && it.kind() == SymbolKind::Data && it.size() > 0);
        Ok(variables.map(|it| (it.address(), it.address().saturating_add(it.size()))).collect::<Variables>())
    });
    let mut all = all.unwrap_or_default();
    all.sort_unstable();
    all.dedup();
    all
}
