//! The words of the report for what the model tells apart. They are listed here, so that the model may rename what it likes; what
//! the model adds has to be named here before it compiles.

use rashomon_event::{Evidence, FindingKind, Grade, Harm, Verdict, WitnessLevel};
use schemars::JsonSchema;
use serde::Serialize;

/// An enumeration with the same variants as one of the model, written in kebab-case.
macro_rules! names {
    ($($name:ident of $model:ident: $($variant:ident)*;)*) => {
        $(
            #[derive(Serialize, JsonSchema)]
            #[serde(rename_all = "kebab-case")]
            pub enum $name {
                $($variant,)*
            }

            impl From<$model> for $name {
                fn from(model: $model) -> Self {
                    match model {
                        $($model::$variant { .. } => Self::$variant,)*
                    }
                }
            }
        )*
    };
}

names! {
    KindName of FindingKind:
        DataRace Deadlock Stuck Endless Failure UnlockNotHeld DestroyLocked DestroyAwaited DoubleLock UseOfDestroyed ThreadLeak
        UseAfterFree LifetimeRace UnsafeInSignal WrongContext NotSerialisable AtomicityViolation;
    EvidenceName of Evidence:
        HappensBefore Hybrid Conflict Lockset LockOrder StaleValue Interposed View Apart Dependences Observed;
    GradeName of Grade: CoEnabled Unordered Deadlocked Stuck Endless Violated Crashed WrongExit Observed Freed;
    HarmName of Harm: Crash Hang Result NoneSeen;
    WitnessName of WitnessLevel: Causal Synchronisation;
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictName {
    Proven,
    Predicted,
    Suspected,
    Diverged,
    Refuted,
}

impl From<&Verdict> for VerdictName {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Proven { .. } => Self::Proven,
            Verdict::Predicted => Self::Predicted,
            Verdict::Suspected => Self::Suspected,
            Verdict::Diverged { .. } => Self::Diverged,
            Verdict::Refuted => Self::Refuted,
        }
    }
}
