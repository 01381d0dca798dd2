//! Where a queue is, and who asks.

use crate::error::QueueError;
use rashomon_files::Links;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Bytes of a file of credentials.
const LONGEST: u64 = 1 << 16;

/// `nats://HOST:PORT`, or `tls://HOST:PORT`, perhaps with a user and a password, or a token, before the host.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    text: String,
    /// Without secrets.
    shown: String,
    pub(crate) is_encrypted: bool,
    pub(crate) login: Option<Login>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    Token(String),
    User(String, String),
    /// A file of NATS: a user's token, signed, and his key.
    Signed(String),
}

/// How a queue is accessed.
#[derive(Clone, Debug)]
pub struct Access {
    pub address: Address,
    pub credentials: Option<PathBuf>,
    /// Who is believed to have signed the server's certificate, besides those that the system believes.
    pub authority: Option<PathBuf>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Secrets are in no message.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl FromStr for Address {
    type Err = QueueError;

    fn from_str(text: &str) -> Result<Self, QueueError> {
        let hidden = |text: &str| text.rsplit_once('@').map_or(text, |(_, place)| place).to_owned();
        let fault = |reason: &str| QueueError::Address { address: hidden(text), reason: reason.into() };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| fault("it has no scheme"))?;
        let is_encrypted = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err(fault("its scheme is neither nats nor tls")),
        };
        let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let place = place.trim_end_matches('/');
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| fault("its port is no number"))?),
            _ => (place, 4222_u16),
        };
        if host.is_empty() || host.contains(['/', '?', '#', ' ']) {
            return Err(fault("it names no host"));
        }
        let login = login.map(login_of).filter(|login| *login != Login::Token(String::new()));
        let place = format!("{scheme}://{host}:{port}");
        Ok(Self { text: place.clone(), shown: place, is_encrypted, login })
    }
}

fn login_of(text: &str) -> Login {
    match text.split_once(':') {
        Some((user, password)) => Login::User(decoded(user), decoded(password)),
        None => Login::Token(decoded(text)),
    }
}

/// `%40` is an `@`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match digits.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Address {
    pub(crate) fn server(&self) -> &str {
        &self.text
    }
}

impl Access {
    /// Who asks: the file says it, else the address.
    pub(crate) fn login(&self) -> Result<Option<Login>, QueueError> {
        self.credentials.as_deref().map_or_else(|| Ok(self.address.login.clone()), |path| file_login(path).map(Some))
    }
}

/// A file of NATS, or one line: `USER:PASSWORD`, or a token.
fn file_login(path: &Path) -> Result<Login, QueueError> {
    let bytes = rashomon_files::read(path, Links::Followed, LONGEST).map_err(QueueError::io("read", path))?;
    let text = String::from_utf8_lossy(&bytes);
    if text.contains("BEGIN NATS USER JWT") {
        return Ok(Login::Signed(text.into_owned()));
    }
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err(QueueError::damaged(&path.display().to_string(), "it holds neither USER:PASSWORD nor a token")),
        line if line.contains('\n') => {
            Err(QueueError::damaged(&path.display().to_string(), "it is no file of NATS and has more than one line"))
        }
        line => Ok(line
            .split_once(':')
            .map_or_else(|| Login::Token(line.to_owned()), |(user, password)| Login::User(user.to_owned(), password.to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_secrets_are_not_shown() {
        let address: Address = "nats://me:p%40ss@host:1".parse().unwrap();
        assert!(matches!(&address.login, Some(Login::User(user, password)) if user == "me" && password == "p@ss"));
        assert_eq!((address.to_string(), address.server()), ("nats://host:1".to_owned(), "nats://host:1"));
        assert_eq!(format!("{address:?}"), "nats://host:1");
        let address: Address = "tls://secret@[::1]".parse().unwrap();
        assert!(matches!(&address.login, Some(Login::Token(token)) if token == "secret"));
        assert!(address.is_encrypted && address.server() == "tls://[::1]:4222");
        assert!("nats://host".parse::<Address>().unwrap().login.is_none());
        for text in ["host:1", "ftp://host", "nats://", "nats://host:x", "nats://u:secret@host:99999", "nats://a/b"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("nats://HOST:PORT") && !error.contains("secret"), "{error}");
        }
    }
}
