//! What can be seen of an execution from outside: how it ended, and what it wrote.

use crate::error::PipelineError;
use rashomon_confirm::Ending;
use rashomon_confirm::execution::OUTPUT_FILE;
use std::path::Path;

/// Bytes of the output that are compared.
const MOST_OUTPUT: u64 = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    ending: Ending,
    output: Vec<u8>,
}

impl Ended {
    /// Of an execution in `session` that kept its output ([`rashomon_confirm::Output::Keep`]).
    pub fn of(ending: Ending, session: &Path) -> Result<Self, PipelineError> {
        use std::io::Read as _;
        let path = session.join(OUTPUT_FILE);
        let mut output = Vec::new();
        let file = std::fs::File::open(&path).map_err(PipelineError::io("open", &path))?;
        file.take(MOST_OUTPUT).read_to_end(&mut output).map_err(PipelineError::io("read", &path))?;
        Ok(Self { ending, output })
    }

    pub const fn ending(&self) -> Ending {
        self.ending
    }

    pub fn words(&self) -> String {
        match self.ending {
            Ending::Code(code) => format!("exit code {code}"),
            Ending::Signal(signal) => format!("signal {signal}"),
            Ending::TimedOut => "it does not end".into(),
        }
    }

    /// The lines of the output, in the order of the alphabet: which thread writes first is no difference.
    pub fn sorted_lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.output);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }
}
