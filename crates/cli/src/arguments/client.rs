//! Who asks a program that serves.

use super::seconds;
use clap::Args;
use rashomon_pipeline::program::Client;
use std::ffi::OsString;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct ClientOptions {
    /// For servers: shell command that is started in every execution once the program listens. When it ends, the program gets
    /// SIGTERM. The first port is in RASHOMON_PORT, the first Unix socket in RASHOMON_SOCKET.
    #[arg(long, value_name = "CMD")]
    pub with_client: Option<OsString>,
    /// Shell command that succeeds once the client may start, repeated until it does. Default: the program listens.
    #[arg(long, value_name = "CMD", requires = "with_client", help_heading = "Recording")]
    pub ready: Option<OsString>,
    /// Seconds after SIGTERM before the program is killed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds, requires = "with_client")]
    #[arg(help_heading = "Recording")]
    pub grace: Duration,
}

impl ClientOptions {
    pub fn asked(&self) -> Option<Client> {
        let command = self.with_client.clone()?;
        Some(Client { command, ready: self.ready.clone(), grace: self.grace })
    }
}
