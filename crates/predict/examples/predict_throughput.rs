//! Time to predict on a generated trace, and to check the witnesses: `predict_throughput [EVENTS] [THREADS] [LOCKS]`.

use rashomon_predict::{Options, predict_each};
use rashomon_witness::Checker;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u32>().unwrap_or(0));
    let (events, threads, locks) =
        (arguments.next().unwrap_or(1_000_000), arguments.next().unwrap_or(12), arguments.next().unwrap_or(100));
    let trace = rashomon_testkit::large(7, threads, u64::from(locks), events as usize);
    let start = Instant::now();
    let checker = Checker::new(&trace);
    println!("checker built  {:6.2} s", start.elapsed().as_secs_f64());
    let (start, mut checking, mut longest) = (Instant::now(), Duration::ZERO, 0);
    let statistics = predict_each(&trace, &Options::default(), |prediction| {
        if let Some(witness) = &prediction.witness {
            let start = Instant::now();
            longest = longest.max(witness.order.len());
            assert!(checker.check(witness).is_ok_and(|level| level >= witness.level));
            checking += start.elapsed();
        }
    });
    println!("predicted      {:6.2} s", (start.elapsed() - checking).as_secs_f64());
    println!("checked        {:6.2} s, longest witness {longest} events", checking.as_secs_f64());
    println!("{statistics:?}");
}
