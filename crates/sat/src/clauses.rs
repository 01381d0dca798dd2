//! The solver's clauses, one behind the other in memory, and who watches which.
//!
//! Two watched literals: Moskewicz, Madigan, Zhao, Zhang, Malik, "Chaff", DAC 2001, §2. The first two literals of a clause are
//! watched; a watch carries another literal of the clause, which spares a look at the clause if it holds.

use crate::literal::Literal;

/// A clause, by its number, until the next reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClauseNumber(pub u32);

#[derive(Clone, Copy, Debug)]
pub struct Watch {
    pub clause: ClauseNumber,
    pub other: Literal,
}

/// What is known of a learnt clause.
#[derive(Clone, Copy, Debug)]
pub struct Learnt {
    /// The step of the proof that derives it.
    pub step: u32,
    /// Decision levels among its literals when it was learnt (Audemard, Simon, "Predicting Learnt Clauses Quality in Modern SAT
    /// Solvers", IJCAI 2009).
    pub levels: u32,
    pub activity: f32,
}

#[derive(Clone, Copy, Debug)]
struct Header {
    start: u32,
    length: u32,
    learnt: Option<Learnt>,
}

/// Of learnt clauses with so few levels none is forgotten.
const GLUE: u32 = 2;
const LARGE: f32 = 1e20;
const DECAY: f32 = 0.999;

pub struct Clauses {
    literals: Vec<Literal>,
    headers: Vec<Header>,
    /// Per literal, the clauses that watch it.
    watches: Vec<Vec<Watch>>,
    learnt: usize,
    increment: f32,
}

impl Default for Clauses {
    fn default() -> Self {
        Self { literals: Vec::new(), headers: Vec::new(), watches: Vec::new(), learnt: 0, increment: 1.0 }
    }
}

impl Clauses {
    pub fn grow(&mut self, variables: usize) {
        self.watches.resize(2 * variables, Vec::new());
    }

    /// At least two literals, of which the first two are watched.
    pub fn add(&mut self, literals: &[Literal], learnt: Option<Learnt>) -> ClauseNumber {
        debug_assert!(literals.len() >= 2);
        let number = ClauseNumber(self.headers.len() as u32);
        self.headers.push(Header { start: self.literals.len() as u32, length: literals.len() as u32, learnt });
        self.literals.extend_from_slice(literals);
        self.learnt += usize::from(learnt.is_some());
        self.watch(number);
        number
    }

    fn watch(&mut self, clause: ClauseNumber) {
        let [one, other] = [self.of(clause)[0], self.of(clause)[1]];
        self.watches[one.index()].push(Watch { clause, other });
        self.watches[other.index()].push(Watch { clause, other: one });
    }

    pub fn of(&self, clause: ClauseNumber) -> &[Literal] {
        let Header { start, length, .. } = self.headers[clause.0 as usize];
        &self.literals[start as usize..(start + length) as usize]
    }

    pub fn of_mut(&mut self, clause: ClauseNumber) -> &mut [Literal] {
        let Header { start, length, .. } = self.headers[clause.0 as usize];
        &mut self.literals[start as usize..(start + length) as usize]
    }

    pub fn learnt(&self) -> usize {
        self.learnt
    }

    pub fn take_watches(&mut self, of: Literal) -> Vec<Watch> {
        std::mem::take(&mut self.watches[of.index()])
    }

    pub fn put_watches(&mut self, of: Literal, watches: Vec<Watch>) {
        self.watches[of.index()] = watches;
    }

    pub fn add_watch(&mut self, of: Literal, watch: Watch) {
        self.watches[of.index()].push(watch);
    }

    /// A conflict has met the clause.
    pub fn bump(&mut self, clause: ClauseNumber) {
        if let Some(learnt) = &mut self.headers[clause.0 as usize].learnt {
            learnt.activity += self.increment;
            if learnt.activity > LARGE {
                self.headers.iter_mut().filter_map(|header| header.learnt.as_mut()).for_each(|learnt| learnt.activity /= LARGE);
                self.increment /= LARGE;
            }
        }
    }

    pub fn decay(&mut self) {
        self.increment /= DECAY;
    }

    /// Forgets the worse half of the learnt clauses, but for those that are `needed`. Per clause its new number, and the steps of
    /// those forgotten.
    pub fn reduce(&mut self, needed: impl Fn(ClauseNumber) -> bool) -> (Vec<Option<ClauseNumber>>, Vec<u32>) {
        let mut worst: Vec<(u32, f32, u32)> = Vec::new();
        for (number, header) in self.headers.iter().enumerate() {
            if let Some(learnt) = header.learnt.filter(|learnt| learnt.levels > GLUE && header.length > 2)
                && !needed(ClauseNumber(number as u32))
            {
                worst.push((learnt.levels, learnt.activity, number as u32));
            }
        }
        worst.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        worst.truncate(worst.len().div_ceil(2));
        let mut forgotten = vec![false; self.headers.len()];
        worst.iter().for_each(|&(.., number)| forgotten[number as usize] = true);
        let mut smaller = Self { increment: self.increment, ..Self::default() };
        smaller.grow(self.watches.len() / 2);
        let (mut numbers, mut steps) = (Vec::with_capacity(self.headers.len()), Vec::new());
        for (number, header) in self.headers.iter().enumerate() {
            match header.learnt {
                Some(learnt) if forgotten[number] => {
                    numbers.push(None);
                    steps.push(learnt.step);
                }
                _ => numbers.push(Some(smaller.add(self.of(ClauseNumber(number as u32)), header.learnt))),
            }
        }
        *self = smaller;
        (numbers, steps)
    }
}
