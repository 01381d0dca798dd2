//! The table of all batches, and a bar for each claim.

use super::{Options, Row, Tally};
use crate::common::bar::Bar;
use crate::common::table::Table;

pub fn print(rows: &[Row]) {
    let titles = [
        "traces",
        "number",
        "cuts",
        "pairs",
        "HB",
        "SHB",
        "sync-pres.",
        "reversal",
        "races",
        "sync. level",
        "WCP",
        "hybrid",
        "deadlocks",
        "sync-pres.",
        "s",
    ];
    let mut table = Table::new(&titles);
    for Row { name, seconds, tally } in rows {
        let counts = [
            tally.traces,
            tally.states,
            tally.pairs,
            tally.hb,
            tally.shb,
            tally.sync_preserving,
            tally.sync_reversal,
            tally.races,
            tally.synchronisation,
            tally.wcp,
            tally.hybrid,
            tally.deadlocks,
            tally.sync_preserving_deadlocks,
        ];
        let mut cells = vec![(*name).to_owned()];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(format!("{seconds:.0}"));
        table.row(cells);
    }
    table.print();
    let total = total(rows);
    println!(
        "\n{} sync-preserving races are no sync-reversal races{}",
        total.not_reversal,
        match &total.not_reversal_example {
            Some(example) => format!(", the first one found:\n{example}"),
            None => String::new(),
        }
    );
    for claim in total.claims.iter().filter(|claim| claim.failed > 0) {
        println!("{}: fails on\n{}", claim.name, claim.example.as_deref().unwrap_or_default());
    }
    println!();
}

fn total(rows: &[Row]) -> Tally {
    let mut total = Tally::default();
    rows.iter().for_each(|row| total.add(row.tally.clone()));
    total
}

pub fn bars(rows: &[Row], options: &Options) -> Vec<Bar> {
    let total = total(rows);
    let mut bars: Vec<Bar> = total
        .claims
        .iter()
        .map(|claim| Bar::holds(claim.name, claim.failed == 0, format!("{} of {} fail", claim.failed, claim.checked)))
        .collect();
    if !options.selecting.quick && options.selecting.only.is_none() {
        let enough = total.traces >= 2_000_000;
        bars.push(Bar::holds("millions of traces", enough, total.traces.to_string()));
    }
    bars
}
