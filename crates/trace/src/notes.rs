//! What the runtime notes of a recording, beside numbers: each note is a bit.

use rashomon_abi::header::note;

/// Bit set of `rashomon_abi::header::note`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RunNotes(pub u64);

impl RunNotes {
    pub const fn truncated(self) -> bool {
        self.0 & note::TRUNCATED != 0
    }
    pub const fn forked(self) -> bool {
        self.0 & note::FORKED != 0
    }
    pub const fn signals(self) -> bool {
        self.0 & note::SIGNALS != 0
    }
    pub const fn external_input(self) -> bool {
        self.0 & note::EXTERNAL_INPUT != 0
    }
    pub const fn executed(self) -> bool {
        self.0 & note::EXECUTED != 0
    }
    /// What a read saw is not known for certain: accesses were left out.
    pub const fn thinned(self) -> bool {
        self.0 & note::THINNED != 0
    }
    /// Accesses that are redundant for detectors of races were left out: what a read saw is not known for certain.
    pub const fn filtered(self) -> bool {
        self.0 & note::FILTERED != 0
    }
    /// It is a beginning of the execution, which only repeated what had happened before.
    pub const fn repeats(self) -> bool {
        self.0 & note::REPEATS != 0
    }
    /// A thread ran beside others without any event.
    pub const fn unseen(self) -> bool {
        self.0 & note::UNSEEN != 0
    }
    pub const fn too_many_processes(self) -> bool {
        self.0 & note::TOO_MANY_PROCESSES != 0
    }
    /// A process that it made could not be recorded.
    pub const fn process_unwritten(self) -> bool {
        self.0 & note::PROCESS_UNWRITTEN != 0
    }
    /// Calls into code without instrumentation were recorded.
    pub const fn unseen_calls(self) -> bool {
        self.0 & note::UNSEEN_CALLS != 0
    }
    /// Plain accesses of a few places alone were kept: what a read saw is not known for certain.
    pub const fn places(self) -> bool {
        self.0 & note::PLACES != 0
    }
    /// What the rest of the set says, one phrase a note.
    pub(crate) fn phrases(self) -> Vec<&'static str> {
        let all = [
            (self.forked(), "it made other processes, which have recordings of their own"),
            (self.signals(), "signal handlers ran"),
            (self.external_input(), "it read external input that a re-execution may not see again"),
            (self.thinned(), "accesses that had been kept often enough were left out"),
            (self.places(), "plain accesses of a few places alone were kept, those of others left out"),
            (
                self.filtered(),
                "accesses that are redundant for detectors of races were left out (TREE): races are all there, but nothing is \
                 predicted, only suspected and proven",
            ),
            (self.executed(), "another program was started in place of this one"),
            (
                self.repeats(),
                "nothing was recorded any more when for two million operations nothing had happened but what had happened before",
            ),
            (
                self.unseen(),
                "a thread ran for so long without any event that others went on beside it: what it did meanwhile is not known",
            ),
            (self.too_many_processes(), "there were more processes than may be recorded: the further ones ran unobserved"),
        ];
        all.into_iter().filter_map(|(present, phrase)| present.then_some(phrase)).collect()
    }
}
