//! Variables by how often conflicts have met them of late.
//!
//! VSIDS: Moskewicz, Madigan, Zhao, Zhang, Malik, "Chaff: Engineering an Efficient SAT Solver", DAC 2001, §3; with a growing
//! increment in place of decay (Eén, Sörensson, "An Extensible SAT-solver", SAT 2003). Of equally active variables the one that
//! was made first wins, so that a search can be repeated.

use crate::literal::Variable;

const DECAY: f64 = 0.95;
const LARGE: f64 = 1e100;
const ABSENT: u32 = u32::MAX;

/// A binary heap, the most active variable on top.
#[derive(Default)]
pub struct Heap {
    variables: Vec<Variable>,
    /// Per variable, its place in the heap.
    places: Vec<u32>,
    activities: Vec<f64>,
    increment: f64,
}

impl Heap {
    /// Adds variables until there are so many.
    pub fn grow(&mut self, variables: usize) {
        for number in self.activities.len()..variables {
            self.activities.push(0.0);
            self.places.push(ABSENT);
            self.insert(Variable(number as u32));
        }
        if self.increment == 0.0 {
            self.increment = 1.0;
        }
    }

    pub fn insert(&mut self, variable: Variable) {
        if self.places[variable.index()] == ABSENT {
            self.places[variable.index()] = self.variables.len() as u32;
            self.variables.push(variable);
            self.up(self.variables.len() - 1);
        }
    }

    pub fn pop(&mut self) -> Option<Variable> {
        let top = *self.variables.first()?;
        let last = self.variables.pop()?;
        self.places[top.index()] = ABSENT;
        if last != top {
            self.put(last, 0);
            self.down(0);
        }
        Some(top)
    }

    pub fn bump(&mut self, variable: Variable) {
        let activity = &mut self.activities[variable.index()];
        *activity += self.increment;
        if *activity > LARGE {
            self.activities.iter_mut().for_each(|activity| *activity /= LARGE);
            self.increment /= LARGE;
        }
        let place = self.places[variable.index()];
        if place != ABSENT {
            self.up(place as usize);
        }
    }

    pub fn decay(&mut self) {
        self.increment /= DECAY;
    }

    fn above(&self, one: Variable, other: Variable) -> bool {
        let (a, b) = (self.activities[one.index()], self.activities[other.index()]);
        a > b || (a == b && one < other)
    }

    fn put(&mut self, variable: Variable, place: usize) {
        self.variables[place] = variable;
        self.places[variable.index()] = place as u32;
    }

    fn up(&mut self, mut place: usize) {
        let variable = self.variables[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.above(variable, self.variables[parent]) {
                break;
            }
            self.put(self.variables[parent], place);
            place = parent;
        }
        self.put(variable, place);
    }

    fn down(&mut self, mut place: usize) {
        let variable = self.variables[place];
        loop {
            let left = 2 * place + 1;
            let Some(&first) = self.variables.get(left) else { break };
            let child = match self.variables.get(left + 1) {
                Some(&second) if self.above(second, first) => left + 1,
                _ => left,
            };
            if !self.above(self.variables[child], variable) {
                break;
            }
            self.put(self.variables[child], place);
            place = child;
        }
        self.put(variable, place);
    }
}

#[test]
fn the_most_active_comes_first() {
    let mut heap = Heap::default();
    heap.grow(6);
    for number in [4, 2, 4, 5, 4, 2] {
        heap.bump(Variable(number));
        heap.decay();
    }
    heap.bump(Variable(1));
    let order: Vec<u32> = std::iter::from_fn(|| heap.pop()).map(|variable| variable.0).collect();
    assert_eq!(order, [4, 2, 1, 5, 0, 3]);
    heap.insert(Variable(3));
    heap.insert(Variable(3));
    heap.insert(Variable(4));
    assert_eq!([heap.pop(), heap.pop(), heap.pop()], [Some(Variable(4)), Some(Variable(3)), None]);
}
