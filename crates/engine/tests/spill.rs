//! What needs all variables at once says the same with tables on disk. One test, because a process has one bound.

use rashomon_engine::serialisability::Regions;
use rashomon_engine::{Kind, LinearResults, Settings, analyse};
use rashomon_packed::{Generator, Shape, Source, TraceError};

#[global_allocator]
static ALLOCATOR: rashomon_spill::Allocator = rashomon_spill::Allocator;

fn run(settings: &Settings) -> LinearResults {
    let shape = Shape {
        events: 500_000,
        threads: 20,
        locks: 30,
        nesting: 3,
        variables: 200_000,
        racy: 500,
        read_shared: 300,
        locations: 400,
        locked: 0.4,
        race_rate: 0.05,
        reads: 0.6,
        ordered: true,
        requests: true,
        transactions: true,
        seed: 7,
    };
    let mut open = || -> Result<Box<dyn Source + Send>, TraceError> {
        Ok(Box::new(Generator::new(shape.clone()).expect("a shape that is possible")))
    };
    analyse(&mut open, settings, &mut |_| {}).expect("an answer")
}

#[test]
fn tables_on_disk_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for kinds in [vec![Kind::Shb], vec![Kind::Wcp], vec![Kind::Serialisability], Kind::ALL.into()] {
        for workers in [1, 2] {
            let plenty =
                Settings { kinds: kinds.clone(), regions: Regions::Marked, window: None, workers, memory: None, spill_to: None };
            let expected = run(&plenty);
            assert_eq!((expected.passes, expected.bytes_on_disk), (1, 0));
            let memory = Some(expected.bytes / 3);
            let ends = run(&Settings { memory, ..plenty.clone() });
            assert!(ends.reports.iter().any(|report| report.until.is_some()), "{kinds:?}: without a folder it ends there");
            let spilt = run(&Settings { memory, spill_to: Some(folder.path().into()), ..plenty });
            let ended: Vec<_> = spilt.reports.iter().filter_map(|report| Some((report.kind, report.until?))).collect();
            assert!(ended.is_empty(), "{kinds:?} by {workers}: {ended:?} with {} bytes on disk", spilt.bytes_on_disk);
            assert!(spilt.reports == expected.reports, "{kinds:?} by {workers}: other reports");
            assert!(spilt.bytes_on_disk > expected.bytes / 4, "{kinds:?}: {} bytes on disk", spilt.bytes_on_disk);
            assert!(spilt.bytes <= expected.bytes / 2, "{kinds:?}: {} of {} bytes in memory", spilt.bytes, expected.bytes);
        }
    }
    assert_eq!(rashomon_spill::on_disk(), 0);
}
