//! A load for memcached: connections that set and get values of their own and count on one that they share. Every answer is
//! checked.

use anyhow::{Context as _, Result, bail};
use rashomon_abi::numbers::SplitMix;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const KEYS: u64 = 400;
const LONGEST_VALUE: u64 = 3000;
/// An answer that takes longer never comes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What came of a load.
#[derive(Debug, Default)]
pub struct Served {
    pub operations: u64,
    /// Of the whole load.
    pub seconds: f64,
    /// Microseconds of each operation, sorted.
    pub latencies: Vec<u32>,
    pub increments: u64,
    /// The shared counter at the end.
    pub counter: u64,
}

impl Served {
    pub fn percentile(&self, percent: f64) -> f64 {
        let at = (self.latencies.len() as f64 * percent / 100.0) as usize;
        let latency = self.latencies.get(at.min(self.latencies.len().saturating_sub(1)));
        latency.map_or(0.0, |&latency| f64::from(latency) / 1000.0)
    }
}

pub struct Client {
    to: TcpStream,
    from: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let to = TcpStream::connect_timeout(&address, TIMEOUT)?;
        to.set_nodelay(true)?;
        to.set_read_timeout(Some(TIMEOUT))?;
        let from = BufReader::new(to.try_clone()?);
        Ok(Self { to, from })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line).context("no answer")?;
        Ok(line.trim_end().to_owned())
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let mut message = format!("set {key} 0 0 {}\r\n", value.len()).into_bytes();
        message.extend_from_slice(value);
        message.extend_from_slice(b"\r\n");
        self.to.write_all(&message)?;
        match self.line()?.as_str() {
            "STORED" => Ok(()),
            other => bail!("set {key} was answered with {other}"),
        }
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>> {
        self.to.write_all(format!("get {key}\r\n").as_bytes())?;
        let head = self.line()?;
        let Some(bytes) = head.strip_prefix(&format!("VALUE {key} 0 ")).and_then(|bytes| bytes.parse::<usize>().ok()) else {
            bail!("get {key} was answered with {head}");
        };
        if bytes > 1 << 20 {
            bail!("get {key} was answered with {bytes} bytes");
        }
        let mut value = vec![0; bytes + 2];
        self.from.read_exact(&mut value)?;
        value.truncate(bytes);
        match self.line()?.as_str() {
            "END" => Ok(value),
            other => bail!("a value ends with {other}"),
        }
    }

    fn increment(&mut self, key: &str) -> Result<u64> {
        self.to.write_all(format!("incr {key} 1\r\n").as_bytes())?;
        let answer = self.line()?;
        answer.parse().with_context(|| format!("incr was answered with {answer}"))
    }

    /// Ends the server.
    pub fn shut_down(mut self) -> Result<()> {
        Ok(self.to.write_all(b"shutdown\r\n")?)
    }
}

/// The value that a key holds in its version: bytes that tell one from another.
fn value(connection: u64, key: u64, version: u64) -> Vec<u8> {
    let mut random = SplitMix((connection << 40) ^ (key << 20) ^ version);
    let length = random.draw() % LONGEST_VALUE;
    (0..length).map(|_| b'a' + (random.draw() % 26) as u8).collect()
}

/// Serves itself for that long over so many connections. Any wrong answer is an error.
pub fn run(address: SocketAddr, connections: u64, length: Duration) -> Result<Served> {
    Client::connect(address)?.set("shared", b"0")?;
    let start = Instant::now();
    let threads: Vec<_> =
        (0..connections).map(|number| std::thread::spawn(move || one(address, number, start + length))).collect();
    let mut served = Served::default();
    for thread in threads {
        let (latencies, increments) = thread.join().map_err(|_| anyhow::anyhow!("a connection's thread panicked"))??;
        served.operations += latencies.len() as u64;
        served.latencies.extend(latencies);
        served.increments += increments;
    }
    served.seconds = start.elapsed().as_secs_f64();
    served.latencies.sort_unstable();
    let counter = Client::connect(address)?.get("shared")?;
    served.counter = String::from_utf8_lossy(&counter).trim().parse().context("the shared counter is no number")?;
    Ok(served)
}

/// One connection: three gets for each set, and now and then the shared counter.
fn one(address: SocketAddr, number: u64, until: Instant) -> Result<(Vec<u32>, u64)> {
    let mut client = Client::connect(address)?;
    let mut versions = vec![0_u64; KEYS as usize];
    let (mut latencies, mut increments, mut state) = (Vec::new(), 0, number + 1);
    while Instant::now() < until {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let key = state % KEYS;
        let name = format!("connection-{number}-key-{key}");
        let version = &mut versions[key as usize];
        let begin = Instant::now();
        match state >> 40 & 15 {
            0 => {
                client.increment("shared")?;
                increments += 1;
            }
            1..=11 if *version > 0 => {
                if client.get(&name)? != value(number, key, *version) {
                    bail!("{name} does not hold what was set");
                }
            }
            _ => {
                *version += 1;
                client.set(&name, &value(number, key, *version))?;
            }
        }
        latencies.push(u32::try_from(begin.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    Ok((latencies, increments))
}
