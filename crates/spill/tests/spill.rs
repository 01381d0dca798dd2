//! One test, because a process has one allocator and one bound.

use rashomon_spill::{Allocator, LARGE, Room, allowing, begin, on_disk, trim};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn numbers(count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    (0..count as u64).for_each(|number| numbers.push(number * number));
    numbers
}

fn assert_intact(numbers: &[u64]) {
    assert!(numbers.iter().enumerate().all(|(place, number)| *number == (place * place) as u64));
}

/// Bytes of files in memory.
fn mapped() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages: usize = statm.split(' ').nth(2).expect("shared").parse().expect("a number");
    pages * 4096
}

#[test]
fn what_exceeds_the_bound_is_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = numbers(LARGE);
    assert_eq!(on_disk(), 0, "there is no bound yet");
    assert!(begin(Room { blocks: LARGE, window: LARGE }, &folder.path().join("nothing")).is_err(), "there is no such folder");
    let bound = Room { blocks: 12 * LARGE, window: 4 * LARGE };
    let spilling = begin(bound, folder.path()).expect("a file");
    assert!(begin(bound, folder.path()).is_err(), "there is a bound already");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "the file has no name");

    // Not where nobody allows it, not what fits, not what is small.
    let elsewhere = numbers(4 * LARGE);
    assert_eq!(on_disk(), 0);
    drop(elsewhere);
    let fits = allowing(|| vec![1_u8; LARGE]);
    let small: Vec<Vec<u8>> = allowing(|| (0..40).map(|_| vec![2; LARGE / 2]).collect());
    assert_eq!(on_disk(), 0);

    // What grows beyond it does, and keeps its content.
    let mut table = allowing(|| numbers(4 * LARGE));
    assert!(on_disk() >= 32 * LARGE && on_disk() < 80 * LARGE, "{}", on_disk());
    assert_intact(&table);
    // Zero, if that was asked for, also where something was before.
    for _ in 0..3 {
        let mut zeros = allowing(|| vec![0_u64; 2 * LARGE]);
        assert!(zeros.iter().all(|zero| *zero == 0));
        zeros.fill(7);
    }
    let used = on_disk();
    drop(allowing(|| vec![0_u8; 16 * LARGE]));
    assert_eq!(on_disk(), used, "what is dropped is given back");

    // In memory or not, it is the same.
    assert_intact(&table);
    let resident = mapped();
    trim();
    assert!(mapped() + 16 * LARGE < resident, "{} of {resident} bytes", mapped());
    assert_intact(&table);
    table[12_345] = 1;
    trim();
    assert_eq!(table[12_345], 1);
    table[12_345] = 12_345 * 12_345;

    // Other threads, and a bound that ends while there are blocks on disk.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| allowing(|| assert_intact(&numbers(LARGE))));
        }
    });
    assert!(spilling.refused().is_none());
    drop(spilling);
    let with_blocks = begin(bound, folder.path()).expect("the same file");
    let more = allowing(|| numbers(2 * LARGE));
    drop(with_blocks);
    table.extend(numbers(4 * LARGE)[..10].iter());
    table.truncate(LARGE / 32);
    table.shrink_to_fit();
    assert_intact(&table);
    assert_intact(&more);
    drop(more);
    assert_eq!(on_disk(), 0);
    drop(begin(bound, folder.path()).expect("a new file"));

    assert_intact(&before);
    assert!(fits.iter().all(|byte| *byte == 1) && small.iter().flatten().all(|byte| *byte == 2));
}
