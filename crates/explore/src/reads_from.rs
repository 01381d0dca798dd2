//! Executions in which reads see what they have not seen yet.
//!
//! D. Wolff, Z. Shi, G. J. Duck, U. Mathur, A. Roychoudhury, "Greybox Fuzzing for Concurrency Testing", ASPLOS 2024, Algorithms
//! 1-3. An *abstract schedule* is a set of wishes: a read at this place is to see what was written at that one. It is tried by an
//! execution that steers towards it (`rashomon_logic::wanted`) and chooses by POS where it says nothing. What reads saw there,
//! by place, is the feedback: an execution in which a read saw something new, or reads together what they never had together,
//! makes its abstract schedule one of those from which further ones are made, the rarely seen first.
//!
//! Deviation 1: with a read's place the places are known that write where it reads. Each pair that no execution has shown is
//! asked for first; then two of them that no execution has shown together (pairwise coverage); only then are sets mutated, or
//! drawn. Deviation 2: operations on synchronisation objects count as reads of what
//! was done to the object before; releases do not count. Deviation 3: one abstract schedule in [`UNSTEERED`] is empty.
//!
//! Guarantee: as for any sample, none; what failed did happen. Limit: inputs are told by place in the code, not by value or
//! thread.

use crate::file::{End, Sampling};
use crate::log::Log;
use crate::search::{Plan, Search};
use rashomon_abi::exploration::{MOST_WANTED, Wanted, Wish};
use rashomon_abi::numbers::SplitMix;
use rashomon_event::counted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Of so many plans one wants nothing.
const UNSTEERED: u64 = 8;
/// Pairs of one abstract schedule.
const MOST_PAIRS: usize = 6;
/// Abstract schedules that are kept.
const MOST_KEPT: usize = 1 << 12;
/// What was asked for so often in vain is not asked for any more.
const OFTEN: u32 = 4;
/// Combinations that are remembered, and inputs of one execution that are combined.
const MOST_TOGETHER: usize = 1 << 20;
const MOST_COMBINED: usize = 1 << 7;
/// What gave a value that nobody wrote.
const NOBODY: u64 = 0;

/// A place that takes, and the place that gave; [`NOBODY`] gives what was there before.
type Pair = (u64, u64);

/// An abstract schedule: the pairs that it asks for, and those that it excludes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Abstract {
    pairs: BTreeMap<Pair, bool>,
}

impl Abstract {
    /// At most one input of each place is asked for.
    fn ask(&mut self, pair: Pair) {
        self.pairs.retain(|other, asked| other.0 != pair.0 || !*asked && *other != pair);
        self.pairs.insert(pair, true);
    }

    fn exclude(&mut self, pair: Pair) {
        self.pairs.insert(pair, false);
    }
}

/// An abstract schedule whose execution showed something new.
#[derive(Clone, Debug)]
struct Kept {
    of: Abstract,
    /// What its execution showed.
    shown: u64,
    /// How often others were made from it.
    used: u64,
}

#[derive(Clone, Debug)]
pub struct ReadsFrom {
    random: SplitMix,
    learned: u64,
    /// Plans that are not learned yet, oldest first.
    open: VecDeque<Abstract>,
    kept: Vec<Kept>,
    /// How many executions showed exactly that.
    shown: FxHashMap<u64, u64>,
    seen: BTreeSet<Pair>,
    /// Of these the inputs of places that have had several.
    choices: Vec<Pair>,
    /// Two that one execution showed, the smaller first; of places that have had several inputs.
    together: FxHashSet<(Pair, Pair)>,
    /// What was asked for, one or two pairs, and how often.
    asked: FxHashMap<(Pair, Option<Pair>), u32>,
    /// By place that takes: the places that give where it takes.
    givers: BTreeMap<u64, BTreeSet<u64>>,
}

/// What one execution showed.
#[derive(Debug, Default)]
struct Inputs {
    pairs: BTreeSet<Pair>,
    /// Places that take, and places that give, by object.
    takers: BTreeMap<u64, BTreeSet<u64>>,
    givers: BTreeMap<u64, BTreeSet<u64>>,
}

impl Inputs {
    fn of(log: &Log) -> Self {
        let mut inputs = Self::default();
        let mut last: FxHashMap<u64, u64> = FxHashMap::default();
        for step in &log.steps {
            let (operation, site) = (&step.does.operation, step.does.site);
            let object = operation.meets_at();
            if object == 0 || site == 0 {
                continue;
            }
            if operation.takes() {
                inputs.pairs.insert((site, last.get(&object).copied().unwrap_or(NOBODY)));
                inputs.takers.entry(object).or_default().insert(site);
            }
            if operation.gives() {
                last.insert(object, site);
                inputs.givers.entry(object).or_default().insert(site);
            }
        }
        inputs
    }

    fn signature(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.pairs.hash(&mut hasher);
        hasher.finish()
    }
}

impl ReadsFrom {
    pub fn new(seed: u64) -> Self {
        Self {
            random: SplitMix(SplitMix::mixed(seed)),
            learned: 0,
            open: VecDeque::new(),
            kept: Vec::new(),
            shown: FxHashMap::default(),
            seen: BTreeSet::new(),
            choices: Vec::new(),
            together: FxHashSet::default(),
            asked: FxHashMap::default(),
            givers: BTreeMap::new(),
        }
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    /// All inputs that a place might have.
    fn possible(&self) -> impl Iterator<Item = Pair> {
        let from = |(&to, givers): (&u64, &BTreeSet<u64>)| {
            let pairs: Vec<Pair> = givers.iter().map(|&from| (to, from)).chain([(to, NOBODY)]).collect();
            pairs
        };
        self.givers.iter().flat_map(from)
    }

    /// Of those that no execution has shown one that was asked for least often; not again and again.
    fn unseen(&mut self) -> Option<Pair> {
        let open: Vec<(u32, Pair)> =
            self.possible().filter(|pair| !self.seen.contains(pair)).map(|pair| (self.times_asked(pair, None), pair)).collect();
        let least = open.iter().map(|(asked, _)| *asked).min().filter(|&least| least < OFTEN)?;
        let open: Vec<Pair> = open.into_iter().filter(|(asked, _)| *asked == least).map(|(_, pair)| pair).collect();
        let pair = open[self.random.below(open.len() as u64) as usize];
        *self.asked.entry((pair, None)).or_default() += 1;
        Some(pair)
    }

    fn times_asked(&self, pair: Pair, other: Option<Pair>) -> u32 {
        self.asked.get(&(pair, other)).copied().unwrap_or(0)
    }

    /// Two inputs that no execution has shown together, not asked for again and again.
    fn apart(&mut self) -> Option<(Pair, Pair)> {
        // Of many combinations most are open: a few draws find one.
        const DRAWS: u32 = 64;
        for _ in 0..DRAWS {
            let (one, other) = (self.any_choice()?, self.any_choice()?);
            let (one, other) = (one.min(other), one.max(other));
            if one.0 != other.0 && !self.together.contains(&(one, other)) && self.times_asked(one, Some(other)) < OFTEN {
                *self.asked.entry((one, Some(other))).or_default() += 1;
                return Some((one, other));
            }
        }
        None
    }

    /// An input of a place that has had another one, too.
    fn any_choice(&mut self) -> Option<Pair> {
        let nth = self.random.below(self.choices.len() as u64) as usize;
        self.choices.get(nth).copied()
    }

    /// One that shows what few executions show, and was used seldom.
    fn base(&self) -> Option<usize> {
        (0..self.kept.len()).min_by_key(|&index| {
            let kept = &self.kept[index];
            (self.shown.get(&kept.shown).copied().unwrap_or(0).saturating_add(kept.used), index)
        })
    }

    fn next_abstract(&mut self) -> Abstract {
        // The first execution shows what there is.
        if self.seen.is_empty() || self.one_in(UNSTEERED) {
            return Abstract::default();
        }
        let base = self.base();
        let mut chosen = base.map(|index| self.kept[index].of.clone()).unwrap_or_default();
        if let Some(index) = base {
            self.kept[index].used += 1;
        }
        if let Some(pair) = self.unseen() {
            // Alone, or beside what is known to go together.
            if self.one_in(2) {
                chosen = Abstract::default();
            }
            chosen.ask(pair);
        } else if let Some((one, other)) = self.apart() {
            if self.one_in(2) {
                chosen = Abstract::default();
            }
            chosen.ask(one);
            chosen.ask(other);
        } else {
            self.mutate(&mut chosen);
        }
        while chosen.pairs.len() > MOST_PAIRS {
            let nth = self.random.below(chosen.pairs.len() as u64) as usize;
            let pair = chosen.pairs.keys().nth(nth).copied();
            pair.map(|pair| chosen.pairs.remove(&pair));
        }
        chosen
    }

    /// An execution that somebody else planned: it has no abstract schedule, but shows inputs as any other.
    pub fn watch(&mut self, log: &Log) {
        self.take_in(log);
    }

    /// Whether a place has had several inputs, or might have: without that there is nothing to steer.
    pub fn has_choices(&self) -> bool {
        !self.choices.is_empty() || self.possible().any(|pair| !self.seen.contains(&pair))
    }

    /// What an execution showed; whether that was new.
    fn take_in(&mut self, log: &Log) -> (u64, bool) {
        let inputs = Inputs::of(log);
        for (object, takers) in &inputs.takers {
            let givers = inputs.givers.get(object);
            for &to in takers {
                self.givers.entry(to).or_default().extend(givers.into_iter().flatten());
            }
        }
        let signature = inputs.signature();
        let times = self.shown.entry(signature).or_default();
        *times += 1;
        let is_first = *times == 1;
        let new = is_first || !inputs.pairs.is_subset(&self.seen);
        if !inputs.pairs.is_subset(&self.seen) {
            self.seen.extend(&inputs.pairs);
            let seen: Vec<Pair> = self.seen.iter().copied().collect();
            self.choices = seen.chunk_by(|one, other| one.0 == other.0).filter(|of| of.len() > 1).flatten().copied().collect();
        }
        self.combine(&inputs.pairs);
        (signature, new)
    }

    /// Remembers what an execution showed together.
    fn combine(&mut self, shown: &BTreeSet<Pair>) {
        let shown: Vec<Pair> = self.choices.iter().copied().filter(|pair| shown.contains(pair)).take(MOST_COMBINED).collect();
        for (at, &one) in shown.iter().enumerate() {
            if self.together.len() < MOST_TOGETHER {
                self.together.extend(shown[at + 1..].iter().map(|&other| (one, other)));
            }
        }
    }

    fn mutate(&mut self, chosen: &mut Abstract) {
        // Small steps from what showed something new get stuck where several inputs have to fit at once.
        if self.one_in(2) {
            *chosen = Abstract::default();
            for _ in 0..2 + self.random.below(2 * MOST_PAIRS as u64) {
                if let Some(pair) = self.any_choice() {
                    chosen.ask(pair);
                }
            }
            return;
        }
        let nth = self.random.below(chosen.pairs.len() as u64) as usize;
        let old = chosen.pairs.keys().nth(nth).copied();
        match (self.random.below(8), old) {
            (0, Some(pair)) => {
                chosen.pairs.remove(&pair);
            }
            (1, Some(pair)) => {
                chosen.pairs.remove(&pair);
                if let Some(pair) = self.any_choice() {
                    chosen.ask(pair);
                }
            }
            (2, _) => {
                if let Some(pair) = self.any_choice() {
                    chosen.exclude(pair);
                }
            }
            (draw, _) => {
                // Together they may be new though each is known.
                for _ in 0..=draw % 2 {
                    if let Some(pair) = self.any_choice() {
                        chosen.ask(pair);
                    }
                }
            }
        }
    }

    /// For the runtime, which knows no initial values.
    fn wanted(&self, of: &Abstract) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for (&(to, from), &asked) in &of.pairs {
            match (asked, from) {
                (true, NOBODY) => {
                    let givers = self.givers.get(&to).into_iter().flatten().filter(|&&from| from != to);
                    wanted.extend(givers.map(|&from| Wanted { wish: Wish::Before, to, from }));
                }
                (true, from) => wanted.push(Wanted { wish: Wish::From, to, from }),
                (false, from) => wanted.push(Wanted { wish: Wish::NotFrom, to, from }),
            }
        }
        wanted.truncate(MOST_WANTED);
        wanted
    }
}

impl Search for ReadsFrom {
    fn next(&mut self) -> Option<Plan> {
        let chosen = self.next_abstract();
        let wanted = self.wanted(&chosen);
        self.open.push_back(chosen);
        Some(Plan { sampling: Sampling::Wanted, seed: self.random.draw(), wanted, ..Plan::of(Vec::new()) })
    }

    fn learn(&mut self, _plan: &Plan, log: &Log, _end: End) {
        self.learned += 1;
        let of = self.open.pop_front().unwrap_or_default();
        let (shown, new) = self.take_in(log);
        if new && self.kept.len() < MOST_KEPT {
            self.kept.push(Kept { of, shown, used: 0 });
        }
    }

    fn is_exhaustive(&self) -> bool {
        false
    }

    fn parallel(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let inputs = counted(self.seen.len() as u64, "new input");
        format!(
            "{} in which reads are steered to inputs that they have not had ({inputs} seen)",
            counted(self.learned, "schedule")
        )
    }
}
