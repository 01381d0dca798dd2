//! memcached's text protocol.

use super::Lines;
use super::store::{MOST_BYTES, Store};
use anyhow::{Context as _, Result, bail};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

pub struct Client(Lines);

impl Store for Client {
    fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self(Lines::connect(address)?))
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let mut message = format!("set {key} 0 0 {}\r\n", value.len()).into_bytes();
        message.extend_from_slice(value);
        message.extend_from_slice(b"\r\n");
        self.0.to.write_all(&message)?;
        match self.0.line()?.as_str() {
            "STORED" => Ok(()),
            other => bail!("set {key} was answered with {other}"),
        }
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>> {
        self.0.to.write_all(format!("get {key}\r\n").as_bytes())?;
        let head = self.0.line()?;
        let Some(bytes) = head.strip_prefix(&format!("VALUE {key} 0 ")).and_then(|bytes| bytes.parse::<usize>().ok()) else {
            bail!("get {key} was answered with {head}");
        };
        if bytes > MOST_BYTES {
            bail!("get {key} was answered with {bytes} bytes");
        }
        let mut value = vec![0; bytes + 2];
        self.0.from.read_exact(&mut value)?;
        value.truncate(bytes);
        match self.0.line()?.as_str() {
            "END" => Ok(value),
            other => bail!("a value ends with {other}"),
        }
    }

    fn increment(&mut self, key: &str) -> Result<u64> {
        self.0.to.write_all(format!("incr {key} 1\r\n").as_bytes())?;
        let answer = self.0.line()?;
        answer.parse().with_context(|| format!("incr was answered with {answer}"))
    }

    fn shut_down(mut self) -> Result<()> {
        Ok(self.0.to.write_all(b"shutdown\r\n")?)
    }
}
