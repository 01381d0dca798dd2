//! A server of ours: values by keys, in memcached's text protocol. A thread for each connection; the table has parts behind a
//! lock each. `shutdown` ends it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

const PARTS: usize = 16;

#[derive(Default)]
struct Table {
    parts: [RwLock<HashMap<String, Vec<u8>>>; PARTS],
    served: AtomicU64,
    ends: AtomicBool,
}

impl Table {
    fn part(&self, key: &str) -> &RwLock<HashMap<String, Vec<u8>>> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        &self.parts[hasher.finish() as usize % PARTS]
    }

    fn answer(&self, command: &str, key: &str, value: Vec<u8>) -> Vec<u8> {
        self.served.fetch_add(1, Ordering::Relaxed);
        match command {
            "get" => match self.part(key).read().unwrap().get(key) {
                Some(value) => [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat(),
                None => b"END\r\n".to_vec(),
            },
            "set" => {
                self.part(key).write().unwrap().insert(key.to_owned(), value);
                b"STORED\r\n".to_vec()
            }
            _ => {
                let mut part = self.part(key).write().unwrap();
                let number = part.entry(key.to_owned()).or_default();
                let next = String::from_utf8_lossy(number).parse::<u64>().unwrap_or(0) + 1;
                *number = next.to_string().into_bytes();
                format!("{next}\r\n").into_bytes()
            }
        }
    }
}

fn serve(table: &Table, mut to: TcpStream) -> Result<()> {
    to.set_nodelay(true)?;
    let own = to.local_addr()?;
    let mut from = BufReader::new(to.try_clone()?);
    let mut line = String::new();
    while from.read_line(&mut line)? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (command, key) = (words.first().copied().unwrap_or_default(), words.get(1).copied().unwrap_or_default());
        if command == "shutdown" {
            table.ends.store(true, Ordering::Release);
            // The one that accepts looks again.
            TcpStream::connect(own)?;
            return Ok(());
        }
        let mut value = Vec::new();
        if command == "set" {
            let length: usize = words.get(4).and_then(|word| word.parse().ok()).unwrap_or(0);
            value.resize(length + 2, 0);
            from.read_exact(&mut value)?;
            value.truncate(length);
        }
        to.write_all(&table.answer(command, key, value))?;
        line.clear();
    }
    Ok(())
}

fn main() {
    let port: u16 = std::env::args().nth(1).and_then(|word| word.parse().ok()).expect("a port");
    let listening = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    let table = Arc::new(Table::default());
    let mut threads = Vec::new();
    for connection in listening.incoming() {
        if table.ends.load(Ordering::Acquire) {
            break;
        }
        let (table, connection) = (Arc::clone(&table), connection.expect("a connection"));
        threads.push(std::thread::spawn(move || serve(&table, connection)));
    }
    for thread in threads {
        let _ = thread.join();
    }
    println!("{}", table.served.load(Ordering::Relaxed));
}
