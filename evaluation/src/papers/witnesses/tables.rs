//! The tables of this evaluation, as text.

use super::{COMBINATIONS, Cell, PORTS, REFUTED, Refuted, Report, THREADS};
use crate::common::table::Table;

/// One of Tables 2 to 4, or the fourth combination.
fn print_table(report: &Report, combination: usize, title: &str) {
    println!("\n{title}: seconds, executions of the search (p: the prefix alone shows the race, nothing is searched), megabytes");
    let mut table = Table::new(&[
        "program",
        "2 threads, s",
        "executions",
        "MB",
        "3 threads, s",
        "executions",
        "MB",
        "4 threads, s",
        "executions",
        "MB",
    ]);
    for port in &PORTS {
        let mut row = vec![port.name.to_owned()];
        for threads in THREADS {
            let wanted = |cell: &&Cell| cell.program == port.name && cell.threads == threads && cell.combination == combination;
            match report.cells.iter().find(wanted) {
                Some(cell) if cell.found => {
                    row.push(format!("{:.3}", cell.seconds));
                    row.push(cell.executions());
                    row.push(format!("{:.0}", cell.megabytes));
                }
                Some(_) => row.extend(["not found".into(), String::new(), String::new()]),
                None => row.extend([const { String::new() }; 3]),
            }
        }
        if row.iter().skip(1).any(|cell| !cell.is_empty()) {
            table.row(row);
        }
    }
    table.print();
    let of_table = || report.cells.iter().filter(|cell| cell.combination == combination && cell.found);
    let by_prefix = of_table().filter(|cell| cell.by_prefix).count();
    println!("{by_prefix} of {} cells by the prefix alone: these compare no searches", of_table().count());
}

pub fn print(report: &Report) {
    println!("{}", report.command);
    for (combination, (title, _)) in COMBINATIONS.iter().enumerate() {
        print_table(report, combination, title);
    }
    if !report.refuted.is_empty() {
        println!("\nA search that finds nothing ({REFUTED}): schedules, seconds with process snapshots and without");
        let mut table = Table::new(&["threads", "schedules", "with", "without", "ratio"]);
        for Refuted { threads, schedules, seconds, .. } in &report.refuted {
            table.row(vec![
                threads.to_string(),
                schedules[0].to_string(),
                format!("{:.2}", seconds[0]),
                format!("{:.2}", seconds[1]),
                format!("{:.1}", seconds[1] / seconds[0]),
            ]);
        }
        table.print();
    }
    println!("\nFig. 10: time of each combination divided by that of the slowest (tables 2, 3, 4)");
    let mut table = Table::new(&["program", "2 threads", "3 threads", "4 threads"]);
    for port in PORTS.iter().filter(|port| !port.by_prefix) {
        // Ratios of prefixes would compare nothing but noise.
        let searched = |cell: &&Cell| cell.program == port.name && cell.found && !cell.by_prefix;
        if !report.cells.iter().any(|cell| searched(&cell)) {
            continue;
        }
        let ratios = |threads: u32| {
            let of = |combination: usize| {
                let wanted =
                    |cell: &&Cell| cell.program == port.name && cell.threads == threads && cell.combination == combination;
                report.cells.iter().find(wanted).map_or(f64::NAN, |cell| cell.seconds)
            };
            let all = [of(0), of(1), of(2)];
            let worst = all.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            all.map(|seconds| format!("{:.2}", seconds / worst)).join(" ")
        };
        let mut row = vec![port.name.to_owned()];
        row.extend(THREADS.map(ratios));
        table.row(row);
    }
    table.print();
    println!("\nFree executions under clang's ThreadSanitizer, 2 threads, that show the race");
    let mut table = Table::new(&["program", "executions", "hits"]);
    for free in &report.free {
        table.row(vec![free.program.into(), free.runs.to_string(), free.hits.to_string()]);
    }
    table.print();
}
