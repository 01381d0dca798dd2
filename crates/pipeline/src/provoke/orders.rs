//! What a proven race does in either order: the program is executed with one side first, then with the other.

use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::provoke::{Campaign, MOST_OUTPUT, NAME, ORDER_TRIES, met, request_of, side_words, watched_again};
use rashomon_confirm::execution::OUTPUT_FILE;
use rashomon_confirm::{Ending, Output, provoke};
use rashomon_event::{First, Provocation};
use rashomon_trace::After;
use std::path::Path;

impl<'c, 'j, S: Symbols + ?Sized> Campaign<'c, 'j, S> {
    /// Lets each proven pair meet twice more, each side going first once, and says what came of it.
    pub(crate) fn compare_orders(&mut self, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        let session = self.job.store.scratch(NAME).join("order");
        let new = std::mem::replace(&mut self.known.compared, self.known.findings.len())..self.known.findings.len();
        for index in if self.settings.orders { new } else { 0..0 } {
            let mut outcomes = Vec::new();
            for first in [First::Held, First::Arrived] {
                let provocation = self.known.findings[index].provocation.clone();
                let outcome = self.in_order(&provocation, first, &session)?;
                outcomes.push(outcome);
            }
            let sides: Vec<String> = self.known.findings[index].finding.sides.iter().map(side_words).collect();
            let note = match outcomes.as_slice() {
                [Some(one), Some(other)] if one == other => format!("both orders of the accesses end alike: {}", one.words()),
                [Some(one), Some(other)] => {
                    let what = if one.ending == other.ending { ", with different output" } else { "" };
                    format!("the order matters: {} first: {}; {} first: {}{what}", sides[0], one.words(), sides[1], other.words())
                }
                _ => continue,
            };
            let proven = &mut self.known.findings[index];
            proven.finding.notes.push(note);
            self.job.store.write_finding(&proven.finding)?;
            observer.progress(Progress::Decided(&proven.finding));
        }
        Ok(())
    }

    /// What comes of the execution in which the pair met and this side went first; `None` if it did not meet again.
    fn in_order(&mut self, provocation: &Provocation, first: First, session: &Path) -> Result<Option<Ended>, PipelineError> {
        for number in 0..ORDER_TRIES {
            if self.is_spent() {
                return Ok(None);
            }
            // Which side is held has to stay the same.
            let watched = watched_again(provocation, 1 + number % 2);
            let request = request_of(provocation, &watched, first);
            let run = provoke(self.job.program, &request, session, &self.setting(After::Continue, Output::Keep))?;
            self.tally.executions += 1;
            if met(&run, provocation) {
                return Ok(Some(Ended { ending: run.execution.ending, output: output_of(session)? }));
            }
        }
        Ok(None)
    }
}

/// What can be seen of an execution from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ended {
    ending: Ending,
    output: Vec<u8>,
}

impl Ended {
    fn words(&self) -> String {
        match self.ending {
            Ending::Code(code) => format!("exit code {code}"),
            Ending::Signal(signal) => format!("signal {signal}"),
            Ending::TimedOut => "it does not end".into(),
        }
    }
}

fn output_of(session: &Path) -> Result<Vec<u8>, PipelineError> {
    use std::io::Read as _;
    let path = session.join(OUTPUT_FILE);
    let mut output = Vec::new();
    let file = std::fs::File::open(&path).map_err(PipelineError::io("open", &path))?;
    file.take(MOST_OUTPUT).read_to_end(&mut output).map_err(PipelineError::io("read", &path))?;
    Ok(output)
}
