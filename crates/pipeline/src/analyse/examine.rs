//! One recorded process, loaded and analysed on a thread of its own, so that whoever waits for it can stop waiting.
//!
//! The thread looks at the clock itself between candidates and within long passes. Where it is too late all the same (a step that
//! takes long and does not look) it is left behind: it ends at its next look, or with the process. Nothing of what it had handed
//! over before is lost.

use crate::analyse::foreseen::{Foreseen, foresee};
use crate::analyse::gaps::heed;
use crate::analyse::{Analysed, Engine, Values, analyse, analyse_values, lives, recognise};
use crate::check::budget::Deadlines;
use crate::check::novelty::Shown;
use crate::error::PipelineError;
use rashomon_event::{Deadline, Trace};
use rashomon_predict::{Statistics, Wanted};
use rashomon_trace::{LoadedTrace, Recording};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Witnesses are as long as what they run: few of them wait at a time.
const WAITING: usize = 2;

enum Message {
    Loaded(Arc<LoadedTrace>, Shown),
    Foreseen(Foreseen),
    Found(Analysed),
    Done(Statistics, Wanted),
    Failed(PipelineError),
}

/// Of the time for predictions, the part that lifetimes may take.
const SHARE_OF_LIVES: u32 = 8;

/// An analysis that goes on.
pub(crate) struct Examination {
    messages: Receiver<Message>,
    thread: Option<JoinHandle<()>>,
    left_behind: Deadline,
    statistics: Option<Statistics>,
    wanted: Wanted,
    foreseen: Vec<Foreseen>,
}

impl Examination {
    /// `trusted`: libraries whose calls order nothing.
    pub(crate) fn begin(folder: PathBuf, (engine, values): (Engine, Values), deadlines: &Deadlines, trusted: &[String]) -> Self {
        let (sender, messages) = sync_channel(WAITING);
        let (deadlines, trusted) = (*deadlines, trusted.to_vec());
        let thread = std::thread::spawn(move || examine(&folder, (engine, values), (&deadlines, &trusted), &sender));
        let (wanted, foreseen) = Default::default();
        Self { messages, thread: Some(thread), left_behind: deadlines.left_behind, statistics: None, wanted, foreseen }
    }

    fn next(&mut self) -> Option<Message> {
        let received = match self.left_behind.left() {
            None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => self.messages.recv_timeout(left),
        };
        match received {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                    std::panic::resume_unwind(panic);
                }
                None
            }
        }
    }

    /// The trace, and what it shows; `None`: there was no time to load it.
    pub(crate) fn loaded(&mut self) -> Result<Option<(Arc<LoadedTrace>, Shown)>, PipelineError> {
        match self.next() {
            Some(Message::Loaded(loaded, shown)) => Ok(Some((loaded, shown))),
            Some(Message::Failed(error)) => Err(error),
            Some(Message::Foreseen(_) | Message::Found(_) | Message::Done(..)) | None => Ok(None),
        }
    }

    /// The next candidate; `None`: there is no more, or no more time.
    pub(crate) fn found(&mut self) -> Option<Analysed> {
        loop {
            match self.next()? {
                Message::Foreseen(foreseen) => self.foreseen.push(foreseen),
                Message::Found(analysed) => return Some(analysed),
                Message::Done(statistics, wanted) => {
                    (self.statistics, self.wanted) = (Some(statistics), wanted);
                    return None;
                }
                Message::Loaded(..) | Message::Failed(_) => return None,
            }
        }
    }

    /// The numbers, if it has come to its end.
    pub(crate) fn statistics(&self) -> Option<Statistics> {
        self.statistics
    }
}

impl Examination {
    /// Which values could show more, once it has come to its end.
    pub(crate) const fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Wrong uses that other orders show, as far as it has come.
    pub(crate) fn take_foreseen(&mut self) -> Vec<Foreseen> {
        std::mem::take(&mut self.foreseen)
    }
}

/// Whoever does not listen any more wants nothing.
fn examine(
    folder: &std::path::Path,
    (engine, values): (Engine, Values),
    (deadlines, trusted): (&Deadlines, &[String]),
    sender: &SyncSender<Message>,
) {
    let loaded = match Recording::open(folder).and_then(|recording| recording.load_until(deadlines.left_behind)) {
        Ok(mut loaded) => {
            recognise(&mut loaded);
            heed(&mut loaded, trusted);
            if !loaded.flow.is_empty() {
                // Without, every read matters for all that comes behind it.
                loaded.trace.uses = rashomon_flow::uses(&loaded, deadlines.predicting).unwrap_or_default();
            }
            let races = lives::lifetime_races(&loaded, deadlines.predicting);
            loaded.misuses.extend(races);
            Arc::new(loaded)
        }
        Err(rashomon_trace::TraceError::OutOfTime { .. }) => return,
        Err(error) => {
            let _ = sender.send(Message::Failed(error.into()));
            return;
        }
    };
    let shown = Shown::of(&loaded.trace, deadlines.predicting);
    if sender.send(Message::Loaded(Arc::clone(&loaded), shown)).is_err() {
        return;
    }
    if values != Values::Alone && engine.asks("maximal") {
        let share = deadlines.predicting.left().map_or(Deadline::NEVER, |left| Deadline::within(left / SHARE_OF_LIVES));
        foresee(&loaded, &engine.limits(), share, |foreseen| {
            let _ = sender.send(Message::Foreseen(foreseen));
        });
    }
    let (statistics, wanted) = analyse_values(&loaded.trace, engine, values, deadlines.predicting, |analysed| {
        let _ = sender.send(Message::Found(analysed));
    });
    if !loaded.trace.kept.is_empty() && values != Values::Alone {
        // What the calls may have ordered need not be so: that is for executions to show.
        let trace = Trace { kept: Vec::new(), ..loaded.trace.clone() };
        analyse(&trace, engine, deadlines.predicting, |analysed| {
            let _ = sender.send(Message::Found(Analysed { despite_calls: true, ..analysed }));
        });
    }
    let _ = sender.send(Message::Done(statistics, wanted));
}
