//! redis' protocol: what it needs of RESP 2.

use super::Lines;
use super::store::{MOST_BYTES, Store};
use anyhow::{Context as _, Result, bail};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

pub struct Client(Lines);

impl Client {
    /// An array of byte strings.
    fn send(&mut self, words: &[&[u8]]) -> Result<()> {
        let mut message = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            message.extend(format!("${}\r\n", word.len()).into_bytes());
            message.extend_from_slice(word);
            message.extend_from_slice(b"\r\n");
        }
        Ok(self.0.to.write_all(&message)?)
    }
}

impl Store for Client {
    fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self(Lines::connect(address)?))
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.send(&[b"SET", key.as_bytes(), value])?;
        match self.0.line()?.as_str() {
            "+OK" => Ok(()),
            other => bail!("SET {key} was answered with {other}"),
        }
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>> {
        self.send(&[b"GET", key.as_bytes()])?;
        let head = self.0.line()?;
        let Some(bytes) = head.strip_prefix('$').and_then(|bytes| bytes.parse::<usize>().ok()) else {
            bail!("GET {key} was answered with {head}");
        };
        if bytes > MOST_BYTES {
            bail!("GET {key} was answered with {bytes} bytes");
        }
        let mut value = vec![0; bytes + 2];
        self.0.from.read_exact(&mut value)?;
        value.truncate(bytes);
        Ok(value)
    }

    fn increment(&mut self, key: &str) -> Result<u64> {
        self.send(&[b"INCR", key.as_bytes()])?;
        let head = self.0.line()?;
        let number = head.strip_prefix(':').and_then(|number| number.parse().ok());
        number.with_context(|| format!("INCR was answered with {head}"))
    }

    fn shut_down(mut self) -> Result<()> {
        self.send(&[b"SHUTDOWN", b"NOSAVE"])
    }
}
