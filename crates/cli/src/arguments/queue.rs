//! A check on many machines, by way of a queue.

use super::seconds;
use clap::Args;
use rashomon_queue::{Access, Address, MOST_UNITS};
use std::path::PathBuf;
use std::time::Duration;

const HEADING: &str = "A queue of work";

/// Of `check`.
#[derive(Clone, Debug, Args)]
pub struct QueueOptions {
    /// Hand the check out to `rashomon worker`s, by way of the NATS server with JetStream there: nats://HOST:PORT, or
    /// tls://HOST:PORT. USER:PASSWORD@ or TOKEN@ before the host says who asks. The program and what --ship names are uploaded.
    #[arg(long, value_name = "URL", help_heading = HEADING, conflicts_with_all = ["shard", "per_test_case"])]
    pub queue: Option<Address>,
    /// With --queue: a file that says who asks: USER:PASSWORD, a token, or a file of credentials of NATS (.creds).
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "queue")]
    pub queue_credentials: Option<PathBuf>,
    /// With --queue: a file of certificates (PEM) that the server's may be signed with, besides those that the system believes.
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "queue")]
    pub queue_ca: Option<PathBuf>,
    /// With --queue: parts that the check is handed out in, each as --shard makes them (1 to 10000), behind one first recording
    /// that all of them begin with. --budget is for each. Default: 16.
    #[arg(long, value_name = "N", help_heading = HEADING, requires = "queue")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_UNITS)))]
    pub units: Option<u32>,
    /// With --queue: a file below this folder that the program needs. Workers execute it in a folder that holds the shipped files
    /// at the same places, and nothing else. May be given several times.
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "queue")]
    pub ship: Vec<PathBuf>,
}

impl QueueOptions {
    pub fn access(&self) -> Option<Access> {
        let address = self.queue.clone()?;
        Some(Access { address, credentials: self.queue_credentials.clone(), authority: self.queue_ca.clone() })
    }
}

#[derive(Debug, Args)]
pub struct WorkerOptions {
    /// Where units come from: the NATS server that `check --queue` names.
    #[arg(long, value_name = "URL")]
    pub queue: Address,
    /// A file that says who asks: USER:PASSWORD, a token, or a file of credentials of NATS (.creds).
    #[arg(long, value_name = "FILE")]
    pub queue_credentials: Option<PathBuf>,
    /// A file of certificates (PEM) that the server's may be signed with, besides those that the system believes.
    #[arg(long, value_name = "FILE")]
    pub queue_ca: Option<PathBuf>,
    /// Execute what others send: programs and shell commands of whoever may write to the queue, as this user. Nothing is executed
    /// without it.
    #[arg(long)]
    pub trust: bool,
    /// Units at the same time (1 to 1000).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub jobs: u32,
    /// End when no unit has come for two seconds and no first recording is being made, or when one of another version comes.
    /// Without it: never.
    #[arg(long)]
    pub once: bool,
    /// Seconds after which a unit is somebody else's whose worker is not heard any more. The same for all workers of a queue.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = lease)]
    pub lease: Duration,
    /// Where programs are kept, and units executed. Default: rashomon in XDG_CACHE_HOME or ~/.cache.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

impl WorkerOptions {
    pub fn access(&self) -> Access {
        Access { address: self.queue.clone(), credentials: self.queue_credentials.clone(), authority: self.queue_ca.clone() }
    }
}

fn lease(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_secs(1);
    seconds(text).and_then(|lease| if lease < LEAST { Err("less than a second".into()) } else { Ok(lease) })
}
