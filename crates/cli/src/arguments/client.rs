//! Who asks a program that serves.

use super::seconds;
use clap::Args;
use rashomon_confirm::Client;
use std::ffi::OsString;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct ClientOptions {
    /// Shell command that is started in every execution once the program listens. When it has ended, the program is asked to end (SIGTERM). It finds the first port in
    /// RASHOMON_PORT and the first local socket in RASHOMON_SOCKET.
    #[arg(long, value_name = "CMD")]
    pub with_client: Option<OsString>,
    /// Shell command that succeeds once the client can begin, tried until it does: instead of waiting until the program listens.
    #[arg(long, value_name = "CMD", requires = "with_client")]
    pub ready: Option<OsString>,
    /// Seconds in which the program has to end when it was asked to, before it is killed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds, requires = "with_client")]
    pub grace: Duration,
}

impl ClientOptions {
    pub fn asked(&self) -> Option<Client> {
        let command = self.with_client.clone()?;
        Some(Client { command, ready: self.ready.clone(), grace: self.grace })
    }
}
