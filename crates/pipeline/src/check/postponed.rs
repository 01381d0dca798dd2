//! Suspicions that are forced behind all others: their proof would tell nobody anything, and takes time that others need.

use rashomon_event::Finding;
use std::fmt;

type IsKnown = dyn Fn(&Finding) -> bool;

/// Which ones: those that are suppressed, or known. By default none.
#[derive(Default)]
pub struct Postponed(Option<Box<IsKnown>>);

impl Postponed {
    /// `is_known`: of a finding that nothing has been executed for yet.
    pub fn where_known(is_known: impl Fn(&Finding) -> bool + 'static) -> Self {
        Self(Some(Box::new(is_known)))
    }

    pub fn has(&self, finding: &Finding) -> bool {
        self.0.as_ref().is_some_and(|is_known| is_known(finding))
    }
}

impl fmt::Debug for Postponed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_some() { "Postponed(some)" } else { "Postponed(none)" })
    }
}
