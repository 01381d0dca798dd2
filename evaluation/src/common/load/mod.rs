//! Loads for servers over loopback: connections that operate one after the other, each answer checked, each operation timed.

pub mod http;
pub mod memcached;
pub mod redis;
pub mod store;

use anyhow::{Context as _, Result};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// An answer that takes longer never comes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Served {
    pub operations: u64,
    /// Of the whole load.
    pub seconds: f64,
    /// Microseconds of each operation, sorted.
    pub latencies: Vec<u32>,
    /// Of a counter that all connections share; where there is none, none.
    pub increments: u64,
    /// That counter at the end.
    pub counter: u64,
}

impl Served {
    pub fn a_second(&self) -> f64 {
        self.operations as f64 / self.seconds.max(f64::EPSILON)
    }

    /// Milliseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        let at = (self.latencies.len() as f64 * percent / 100.0) as usize;
        let latency = self.latencies.get(at.min(self.latencies.len().saturating_sub(1)));
        latency.map_or(0.0, |&latency| f64::from(latency) / 1000.0)
    }

    /// Something was done, and no increment was lost.
    pub fn is_correct(&self) -> bool {
        self.operations > 0 && self.counter == self.increments
    }
}

/// A connection of a protocol whose answers begin with a line.
pub struct Lines {
    to: TcpStream,
    from: BufReader<TcpStream>,
}

impl Lines {
    fn connect(address: SocketAddr) -> Result<Self> {
        let to = TcpStream::connect_timeout(&address, TIMEOUT)?;
        to.set_nodelay(true)?;
        to.set_read_timeout(Some(TIMEOUT))?;
        let from = BufReader::new(to.try_clone()?);
        Ok(Self { to, from })
    }

    /// Without its end.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line).context("no answer")?;
        Ok(line.trim_end().to_owned())
    }
}

/// What operates over a connection.
pub trait Session {
    /// Any wrong answer is an error.
    fn operate(&mut self) -> Result<()>;

    /// Increments of the shared counter so far.
    fn increments(&self) -> u64 {
        0
    }
}

/// Operates for that long over so many connections, which are opened by their number.
pub fn run<S: Session>(connections: u64, length: Duration, open: impl Fn(u64) -> Result<S> + Sync) -> Result<Served> {
    let start = Instant::now();
    let one = |number: u64| -> Result<(Vec<u32>, u64)> {
        let mut session = open(number)?;
        let mut latencies = Vec::new();
        while start.elapsed() < length {
            let begin = Instant::now();
            session.operate()?;
            latencies.push(u32::try_from(begin.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        Ok((latencies, session.increments()))
    };
    let mut served = Served::default();
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|number| scope.spawn(move || one(number))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<_>>>()
    })?;
    for (latencies, increments) in all {
        served.operations += latencies.len() as u64;
        served.latencies.extend(latencies);
        served.increments += increments;
    }
    served.seconds = start.elapsed().as_secs_f64();
    served.latencies.sort_unstable();
    Ok(served)
}
