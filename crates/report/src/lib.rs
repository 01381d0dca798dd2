//! What the user reads. One model, [`Report`] of [`rashomon_event::Finding`] and [`RunSummary`], one file a format, each a line
//! in [`FORMATS`]. Online detection's warnings and what the linear analyses find have more to say of themselves in
//! [`warning`] and [`analysis`], and are findings for every format that does not ask. No I/O, no clock, no environment: the same
//! input gives the same bytes.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod cause;
pub mod fingerprint;
pub mod format;
pub mod frame;
pub mod lost;
pub mod order;
mod place;
pub mod sources;
pub mod summary;
pub mod timeline;
mod told;
pub mod warning;

pub use format::{Format, Options, Rendered, Report, named};
pub use lost::Lost;
pub use order::{Shown, by_importance};
pub use place::title;
pub use summary::{Counts, ProgramExit, RunSummary, Status, TestCase, Unexamined};

/// Declares the module of each format, and lists them.
macro_rules! formats {
    ($($module:ident: $format:ident,)*) => {
        $(pub mod $module;)*

        /// Every format, by name wherever a user names one: `rashomon report --format`, `rashomon detect --format`,
        /// `rashomon analyse --report-format`.
        pub const FORMATS: &[&dyn Format] = &[$(&$module::$format),*];
    };
}

// A new format is its file, and a line here.
formats! {
    text: Text,
    json: Json,
    tsan: Tsan,
    html: Html,
    sarif: Sarif,
    junit: JUnit,
    github: GitHub,
    gitlab: GitLab,
}
