//! A load for servers that keep values by keys: each connection sets and gets values of its own, and counts on one that all
//! share.

use super::{Served, Session, run};
use anyhow::{Context as _, Result, bail};
use rashomon_abi::numbers::SplitMix;
use std::net::SocketAddr;
use std::time::Duration;

const KEYS: u64 = 400;
const LONGEST_VALUE: u64 = 3000;
const SHARED: &str = "shared";
/// No value that a server sends is longer.
pub const MOST_BYTES: usize = 1 << 20;

/// A connection to one, in its protocol.
pub trait Store: Sized {
    fn connect(address: SocketAddr) -> Result<Self>;
    fn set(&mut self, key: &str, value: &[u8]) -> Result<()>;
    fn get(&mut self, key: &str) -> Result<Vec<u8>>;
    fn increment(&mut self, key: &str) -> Result<u64>;
    /// Ends the server.
    fn shut_down(self) -> Result<()>;
}

/// The value that a key holds in its version: bytes that tell one from another.
fn value(connection: u64, key: u64, version: u64) -> Vec<u8> {
    let mut random = SplitMix((connection << 40) ^ (key << 20) ^ version);
    let length = random.draw() % LONGEST_VALUE;
    (0..length).map(|_| b'a' + (random.draw() % 26) as u8).collect()
}

/// Three gets for each set, and now and then the shared counter.
struct Keeping<S> {
    store: S,
    number: u64,
    versions: Vec<u64>,
    increments: u64,
    random: SplitMix,
}

impl<S: Store> Session for Keeping<S> {
    fn operate(&mut self) -> Result<()> {
        let drawn = self.random.draw();
        let key = drawn % KEYS;
        let name = format!("connection-{}-key-{key}", self.number);
        let version = &mut self.versions[key as usize];
        match drawn >> 40 & 15 {
            0 => {
                self.store.increment(SHARED)?;
                self.increments += 1;
            }
            1..=11 if *version > 0 => {
                if self.store.get(&name)? != value(self.number, key, *version) {
                    bail!("{name} does not hold what was set");
                }
            }
            _ => {
                *version += 1;
                self.store.set(&name, &value(self.number, key, *version))?;
            }
        }
        Ok(())
    }

    fn increments(&self) -> u64 {
        self.increments
    }
}

pub fn load<S: Store>(address: SocketAddr, connections: u64, length: Duration) -> Result<Served> {
    S::connect(address)?.set(SHARED, b"0")?;
    let open = |number| {
        let (store, random) = (S::connect(address)?, SplitMix(number + 1));
        Ok(Keeping { store, number, versions: vec![0; KEYS as usize], increments: 0, random })
    };
    let mut served = run(connections, length, open)?;
    let counter = S::connect(address)?.get(SHARED)?;
    served.counter = String::from_utf8_lossy(&counter).trim().parse().context("the shared counter is no number")?;
    Ok(served)
}
