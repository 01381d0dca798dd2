use super::*;
use rashomon_abi::record::{AccessClass, access_kind, word};

const LOOP: u64 = 0x40_1000;
const SITES: [u64; 2] = [0x40_1010, 0x40_1020];

/// Reads a fixed place before the exit, then a segment, and writes an array backwards.
fn definition() -> Vec<u64> {
    let read = word(0, access_kind(AccessClass::Read, 3), 0);
    let write = word(1, access_kind(AccessClass::Write, 2), -4_i64 as u64);
    let counts = WRITTEN | 1 << 48 | 2 << 32 | 3;
    let head = word(1, record::COUNTED_DEFINITION, LOOP);
    vec![head, counts, WRITTEN | 0x5000, read, SITES[0], word(0, record::SEGMENT, 7), write, SITES[1]]
}

fn iterations(count: u64, base: u64) -> Vec<u64> {
    vec![word(0, record::COUNTED, LOOP), WRITTEN | count, WRITTEN | base]
}

/// Rows of a matrix at a fixed place, each of them shorter by one; the amount that a row takes is a value.
fn nest_definition() -> Vec<u64> {
    let (read, write) = (access_kind(AccessClass::Read, 3), access_kind(AccessClass::Write, 2));
    let operations = [
        nest::begins(64, true, 15, 1, 0),
        word(0, record::SEGMENT, 3),
        nest::access(read, 0, 1),
        nest::amount(0),
        SITES[0],
        word(0, nest::EXIT, 0),
        nest::begins(32, false, 8, 2, 1),
        nest::amount(-1),
        word(0, nest::EXIT, 0),
        nest::access(write, 0, 2),
        nest::amount_of_value(3),
        nest::amount(4),
        SITES[1],
        word(0, record::SEGMENT, 5),
        word(0, nest::END, 0),
        word(0, nest::END, 0),
    ];
    let counts = WRITTEN | 1 << 48 | 4 << 32 | operations.len() as u64;
    [&[word(0, record::NEST_DEFINITION, LOOP), counts, WRITTEN | 0x5000][..], &operations].concat()
}

fn nest(rows: u64, columns: u64, row: i64) -> Vec<u64> {
    vec![word(0, record::NEST, LOOP), WRITTEN | rows, WRITTEN | columns, WRITTEN | row as u64 & LOW_MASK]
}

fn take(counted: &mut Counted, words: &[u64]) -> Length {
    counted.take(record::kind_of(words[0]), words)
}

fn told(counted: &mut Counted) -> Vec<Record> {
    std::iter::from_fn(|| counted.next_record()).collect()
}

#[test]
fn a_record_stands_for_all_iterations_and_the_last_look_at_the_condition() {
    let mut counted = Counted::default();
    let words = definition();
    assert_eq!(take(&mut counted, &words), Ok(Some(words.len())));
    assert_eq!(take(&mut counted, &iterations(2, 0x6000)), Ok(Some(3)));
    let read = Record::Access { class: AccessClass::Read, size: 8, address: 0x5000, site: SITES[0] };
    let write = |address| Record::Access { class: AccessClass::Write, size: 4, address, site: SITES[1] };
    let segment = Record::Segment { segment: 7 };
    assert_eq!(told(&mut counted), [read, segment, write(0x6000), read, segment, write(0x5ffc), read]);
    assert!(!counted.is_inside());
}

#[test]
fn a_record_stands_for_loops_in_loops() {
    let mut counted = Counted::default();
    let words = nest_definition();
    assert_eq!(take(&mut counted, &words), Ok(Some(words.len())));
    assert_eq!(take(&mut counted, &nest(2, 2, -0x100)), Ok(Some(4)));
    let begin =
        [Record::Segment { segment: 3 }, Record::Access { class: AccessClass::Read, size: 8, address: 0x5000, site: SITES[0] }];
    let write = |address| {
        let access = Record::Access { class: AccessClass::Write, size: 4, address, site: SITES[1] };
        [access, Record::Segment { segment: 5 }]
    };
    let expected = [begin, write(0x5000), write(0x5004), begin, write(0x4f00), begin].concat();
    assert_eq!(told(&mut counted), expected);
    // A loop that does not iterate tells what comes before its exit.
    assert_eq!(take(&mut counted, &nest(0, 2, 8)), Ok(Some(4)));
    assert_eq!(told(&mut counted), begin);
}

#[test]
fn what_was_not_written_as_a_whole_is_torn() {
    for (definition, begin) in [(definition(), iterations(2, 0x6000)), (nest_definition(), nest(2, 2, 8))] {
        for missing in 1..definition.len() {
            let mut cut = definition.clone();
            cut[missing..].fill(0);
            assert_eq!(take(&mut Counted::default(), &cut), Ok(None), "{missing} words");
        }
        let mut counted = Counted::default();
        assert!(take(&mut counted, &definition).is_ok());
        for missing in 1..begin.len() {
            let mut cut = begin.clone();
            cut[missing..].fill(0);
            assert_eq!(take(&mut counted, &cut), Ok(None), "{missing} words");
        }
    }
}

#[test]
fn damage_does_not_become_millions_of_events() {
    let mut counted = Counted::default();
    assert_eq!(take(&mut counted, &iterations(1, 0x6000)), Err(FaultKind::UndefinedLoop(LOOP)));
    let words = definition();
    assert!(take(&mut counted, &words).is_ok());
    for count in [nest::MOST_OPERATIONS, !WRITTEN & LOW_MASK] {
        assert_eq!(take(&mut counted, &iterations(count, 0x6000)), Err(FaultKind::LoopSize));
    }
    // A base that there is not, and more operations than there may be.
    let mut words = definition();
    words[6] = word(2, access_kind(AccessClass::Write, 2), 4);
    assert_eq!(take(&mut counted, &words), Err(FaultKind::Loop));
    words[1] |= 0xffff;
    assert_eq!(take(&mut counted, &words), Err(FaultKind::Loop));

    let words = nest_definition();
    assert!(take(&mut counted, &words).is_ok());
    for (rows, columns) in [(3, 1), (1 << 20, 1 << 30), (1, u64::from(u32::MAX))] {
        assert_eq!(take(&mut counted, &nest(rows, columns, 8)), Err(FaultKind::LoopSize));
    }
    // Whatever is changed is refused or is a nest of bounded size.
    for at in 2..words.len() {
        for bit in 0..64 {
            let mut words = words.clone();
            words[at] ^= 1 << bit;
            if take(&mut counted, &words).is_ok() && take(&mut counted, &nest(2, 2, 8)) == Ok(Some(4)) {
                assert!(told(&mut counted).len() as u64 <= nest::MOST_OPERATIONS);
            }
        }
    }
}

/// Random numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A number that begins with a value and grows with the loops around; each amount is a value or none.
struct Grows {
    value: u64,
    amounts: Vec<(i64, Option<u64>)>,
}

enum Part {
    Segment(u64),
    Access(Grows),
    Loop { count: Grows, before: Vec<Part>, behind: Vec<Part> },
}

impl Grows {
    fn draw(draw: &mut Draw, depth: usize, start: u64, most: i64, values: &mut Vec<u64>) -> Self {
        let value = values.len() as u64;
        values.push(start);
        let amount = |_| {
            let amount = draw.below(2 * most as u64 + 1) as i64 - most;
            let is_value = draw.below(3) == 0;
            (
                amount,
                is_value.then(|| {
                    values.push(amount as u64 & LOW_MASK);
                    values.len() as u64 - 1
                }),
            )
        };
        Self { value, amounts: (0..depth).map(amount).collect() }
    }

    fn words(&self, out: &mut Vec<u64>) {
        let word = |&(amount, value): &(i64, Option<u64>)| value.map_or(nest::amount(amount), nest::amount_of_value);
        out.extend(self.amounts.iter().map(word));
    }

    fn at(&self, iterations: &[i64], values: &[u64]) -> i64 {
        let grown: i64 = self.amounts.iter().zip(iterations).map(|((amount, _), iteration)| amount * iteration).sum();
        values[self.value as usize] as i64 + grown
    }
}

impl Part {
    fn draw(draw: &mut Draw, depth: usize, values: &mut Vec<u64>) -> Self {
        match draw.below(4) {
            0 => Self::Segment(draw.below(9)),
            1 if depth < 3 => Self::a_loop(draw, depth, values),
            _ => Self::Access(Grows::draw(draw, depth, 0x10_0000, 64, values)),
        }
    }

    fn a_loop(draw: &mut Draw, depth: usize, values: &mut Vec<u64>) -> Self {
        let start = draw.below(4) + 3 * depth as u64;
        let most = draw.below(2) as i64;
        let count = Grows::draw(draw, depth, start, most, values);
        let [before, behind] = [(); 2].map(|()| {
            let parts = draw.below(3);
            (0..parts).map(|_| Self::draw(draw, depth + 1, values)).collect()
        });
        Self::Loop { count, before, behind }
    }

    fn words(&self, depth: u64, out: &mut Vec<u64>) {
        match self {
            Self::Segment(number) => out.push(word(0, record::SEGMENT, *number)),
            Self::Access(address) => {
                out.push(nest::access(access_kind(AccessClass::Write, 3), address.value, depth));
                address.words(out);
                out.push(SITES[0]);
            }
            Self::Loop { count, before, behind } => {
                let begin = out.len();
                out.push(nest::begins(64, false, 0, count.value, depth));
                count.words(out);
                before.iter().for_each(|part| part.words(depth + 1, out));
                out.push(word(0, nest::EXIT, 0));
                behind.iter().for_each(|part| part.words(depth + 1, out));
                let words = out.len() - begin;
                let varies = nest::varies(out, begin, out.len());
                out[begin] = nest::begins(64, varies, words as u64, count.value, depth);
                out.push(word(0, nest::END, 0));
            }
        }
    }

    /// By recursion over what was drawn; false: a loop iterates less than never, which no program tells.
    fn tell(&self, iterations: &[i64], values: &[u64], out: &mut Vec<Record>) -> bool {
        match self {
            Self::Segment(segment) => out.push(Record::Segment { segment: *segment }),
            Self::Access(address) => {
                let address = address.at(iterations, values) as u64;
                out.push(Record::Access { class: AccessClass::Write, size: 8, address, site: SITES[0] });
            }
            Self::Loop { count, before, behind } => {
                let count = count.at(iterations, values);
                for iteration in 0..=count {
                    let inside = [iterations, &[iteration]].concat();
                    let behind = if iteration < count { behind.as_slice() } else { &[] };
                    if !before.iter().chain(behind).all(|part| part.tell(&inside, values, out)) {
                        return false;
                    }
                }
                return count >= 0;
            }
        }
        true
    }
}

#[test]
fn random_nests_are_told_as_recursion_tells_them() {
    let mut draw = Draw(0x5eed);
    let (mut compared, mut refused) = (0, 0);
    while compared < 2000 {
        let mut values = Vec::new();
        let part = Part::a_loop(&mut draw, 0, &mut values);
        let (mut operations, mut expected) = (Vec::new(), Vec::new());
        part.words(0, &mut operations);
        let has_access = operations.contains(&SITES[0]);
        if !has_access || values.len() > MOST_VALUES || operations.len() > MOST_WORDS {
            continue;
        }
        let fixed = draw.below(values.len() as u64 + 1) as usize;
        let counts = WRITTEN | (fixed as u64) << 48 | (values.len() as u64) << 32 | operations.len() as u64;
        let written = |values: &[u64]| values.iter().map(|value| WRITTEN | value).collect::<Vec<u64>>();
        let head = vec![word(0, record::NEST_DEFINITION, LOOP), counts];
        let definition = [head, written(&values[..fixed]), operations].concat();
        let mut counted = Counted::default();
        assert_eq!(take(&mut counted, &definition), Ok(Some(definition.len())));
        let begin = [vec![word(0, record::NEST, LOOP)], written(&values[fixed..])].concat();
        if !part.tell(&[], &values, &mut expected) {
            assert_eq!(take(&mut counted, &begin), Err(FaultKind::LoopSize));
            refused += 1;
            continue;
        }
        assert_eq!(take(&mut counted, &begin), Ok(Some(begin.len())));
        assert_eq!(told(&mut counted), expected);
        compared += 1;
    }
    assert!(refused > 0);
}
