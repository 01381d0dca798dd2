//! HTTP/1.1 GETs of files whose contents are known, over connections that stay open.

use super::{Lines, Served, Session, run};
use anyhow::{Result, bail};
use rashomon_abi::numbers::SplitMix;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

/// No head of an answer has more lines.
const MOST_LINES: u32 = 100;

struct Getting<'f> {
    connection: Lines,
    files: &'f [(String, Vec<u8>)],
    random: SplitMix,
}

impl Getting<'_> {
    fn get(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.connection.to.write_all(format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        let mut length = None;
        for nth in 0..MOST_LINES {
            let line = self.connection.line()?;
            if nth == 0 && line != "HTTP/1.1 200 OK" {
                bail!("GET {name} was answered with {line}");
            }
            if line.is_empty() {
                break;
            }
            if let Some((_, number)) = line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
                length = number.parse::<usize>().ok();
            }
        }
        if length != Some(content.len()) {
            bail!("GET {name} was answered with {length:?} bytes instead of {}", content.len());
        }
        let mut body = vec![0; content.len()];
        self.connection.from.read_exact(&mut body)?;
        if body != content {
            bail!("GET {name} was answered with other bytes");
        }
        Ok(())
    }
}

impl Session for Getting<'_> {
    fn operate(&mut self) -> Result<()> {
        let (name, content) = &self.files[self.random.below(self.files.len() as u64) as usize];
        self.get(name, content)
    }
}

/// `files`: name and content of each.
pub fn load(address: SocketAddr, files: &[(String, Vec<u8>)], connections: u64, length: Duration) -> Result<Served> {
    run(connections, length, |number| Ok(Getting { connection: Lines::connect(address)?, files, random: SplitMix(number + 1) }))
}
