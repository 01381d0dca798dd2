//! The exchange over NATS JetStream.
//!
//! Units are messages of a work-queue stream, outcomes and open jobs are keys, files and archives are objects. Everything is kept
//! in files of the server, so that it survives it. Names:
//!
//! ```text
//! stream RASHOMON_UNITS      rashomon.units.JOB.NUMBER     one durable consumer, `workers`
//! bucket rashomon_outcomes   JOB.NUMBER                    the first one that is created counts
//! bucket rashomon_jobs       JOB, more_to_come             forgotten if it is not renewed
//! bucket rashomon_objects    JOB-HASH, JOB-NUMBER-NONCE
//! ```

use crate::address::{Access, Login};
use crate::error::QueueError;
use crate::exchange::{Exchange, Taken, patiently};
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, AckKind, Context, kv};
use async_nats::{ConnectErrorKind, ConnectOptions};
use futures_util::{StreamExt as _, TryStreamExt as _};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

const UNITS: &str = "RASHOMON_UNITS";
const SUBJECT: &str = "rashomon.units";
const CONSUMER: &str = "workers";
const OUTCOMES: &str = "rashomon_outcomes";
const JOBS: &str = "rashomon_jobs";
const OBJECTS: &str = "rashomon_objects";
/// Holds a job that has more to hand out. No job has such a name.
const MORE: &str = "more_to_come";
/// What nobody has removed by then is left over.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// A job whose coordinator is not heard for so long is over.
const OPEN: Duration = Duration::from_secs(10 * 60);
/// In which a unit that is published twice is one.
const DEDUPLICATED: Duration = Duration::from_secs(3600);
/// Workers that have a unit, or wait for one, at the same time.
const MOST_TAKEN: i64 = 100_000;
/// Of one request; an object takes longer, but not each piece of it.
const ANSWER: Duration = Duration::from_secs(5);
const TRANSFER: Duration = Duration::from_secs(600);

/// A connection. It is renewed by itself when the server comes back.
pub struct Nats {
    handle: Handle,
    context: Context,
    lease: Duration,
    /// What the server has told of its parts, each of which costs a question. Asked again behind every failure: they may be gone.
    consumer: Known<PullConsumer>,
    units: Known<Stream>,
    outcomes: Known<kv::Store>,
    jobs: Known<kv::Store>,
    objects: Known<ObjectStore>,
    /// Dropped, it ends the thread that drives the connection.
    _alive: oneshot::Sender<()>,
}

/// What is known of a part of the server, once somebody has asked.
struct Known<T>(Mutex<Option<T>>);

impl<T: Clone> Known<T> {
    const fn nothing() -> Self {
        Self(Mutex::new(None))
    }

    async fn or(&self, ask: impl Future<Output = Result<T, QueueError>>) -> Result<T, QueueError> {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(known);
        }
        let told = ask.await?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(told.clone());
        Ok(told)
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Nats {
    /// Connects. `lease`: how long a unit that a worker took is his, if he does not renew it.
    pub fn connect(access: &Access, lease: Duration) -> Result<Self, QueueError> {
        let options = options_of(access)?;
        let address = access.address.to_string();
        let unreachable = |reason: String| QueueError::Unreachable { address: address.clone(), reason };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| unreachable(error.to_string()))?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel::<()>();
        let drive = move || drop(runtime.block_on(ended));
        std::thread::Builder::new().name("queue".into()).spawn(drive).map_err(|error| unreachable(error.to_string()))?;
        let client = handle.block_on(options.connect(access.address.server())).map_err(|error| match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                QueueError::Refused { address: address.clone() }
            }
            // Some servers close the connection before they have said why.
            _ => unreachable(words(&error)),
        })?;
        let context = handle.block_on(async {
            let mut context = jetstream::new(client);
            context.set_timeout(ANSWER);
            context
        });
        let new = Self {
            handle,
            context,
            lease,
            consumer: Known::nothing(),
            units: Known::nothing(),
            outcomes: Known::nothing(),
            jobs: Known::nothing(),
            objects: Known::nothing(),
            _alive: alive,
        };
        // Who comes at the same time makes the same, and one of both is told to wait.
        patiently(ANSWER * 2, &mut |_| {}, || new.wait(ANSWER * 2, new.prepare()))?;
        Ok(new)
    }

    /// Waits for the end of something, at most so long.
    fn wait<T>(&self, most: Duration, work: impl Future<Output = Result<T, QueueError>>) -> Result<T, QueueError> {
        let result = self.handle.block_on(async {
            match tokio::time::timeout(most, work).await {
                Ok(result) => result,
                Err(_) => Err(QueueError::NoAnswer { reason: format!("none within {} seconds", most.as_secs()) }),
            }
        });
        if matches!(result, Err(QueueError::NoAnswer { .. })) {
            self.consumer.forget();
            self.units.forget();
            self.outcomes.forget();
            self.jobs.forget();
            self.objects.forget();
        }
        result
    }

    /// What is not there yet is made.
    async fn prepare(&self) -> Result<(), QueueError> {
        self.make_units().await?;
        let bucket = |bucket: &str, max_age| kv::Config { bucket: bucket.into(), history: 1, max_age, ..kv::Config::default() };
        for (name, age) in [(OUTCOMES, KEPT), (JOBS, OPEN)] {
            if self.context.get_key_value(name).await.is_err() {
                self.context.create_key_value(bucket(name, age)).await.map_err(failed)?;
            }
        }
        if self.context.get_object_store(OBJECTS).await.is_err() {
            let config = object_store::Config { bucket: OBJECTS.into(), max_age: KEPT, ..object_store::Config::default() };
            self.context.create_object_store(config).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn make_units(&self) -> Result<Stream, QueueError> {
        let config = stream::Config {
            name: UNITS.into(),
            subjects: vec![format!("{SUBJECT}.>")],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            max_age: KEPT,
            duplicate_window: DEDUPLICATED,
            ..stream::Config::default()
        };
        self.context.get_or_create_stream(config).await.map_err(failed)
    }

    async fn units(&self) -> Result<Stream, QueueError> {
        self.units.or(self.make_units()).await
    }

    async fn consumer(&self) -> Result<PullConsumer, QueueError> {
        self.consumer.or(self.make_consumer()).await
    }

    async fn make_consumer(&self) -> Result<PullConsumer, QueueError> {
        let config = pull::Config {
            durable_name: Some(CONSUMER.into()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.lease,
            max_deliver: -1,
            max_ack_pending: MOST_TAKEN,
            // More than the server's usual 512 are refused, and ask again at once.
            max_waiting: MOST_TAKEN,
            ..pull::Config::default()
        };
        self.units().await?.create_consumer(config).await.map_err(failed)
    }

    async fn outcomes(&self) -> Result<kv::Store, QueueError> {
        self.outcomes.or(async { self.context.get_key_value(OUTCOMES).await.map_err(failed) }).await
    }

    async fn jobs(&self) -> Result<kv::Store, QueueError> {
        self.jobs.or(async { self.context.get_key_value(JOBS).await.map_err(failed) }).await
    }

    async fn objects(&self) -> Result<ObjectStore, QueueError> {
        self.objects.or(async { self.context.get_object_store(OBJECTS).await.map_err(failed) }).await
    }

    /// The last words of the subjects that have a message.
    async fn numbers(&self, stream: &Stream, prefix: &str) -> Result<BTreeSet<u32>, QueueError> {
        let mut subjects = stream.info_with_subjects(format!("{prefix}.*")).await.map_err(failed)?;
        let mut numbers = BTreeSet::new();
        while let Some((subject, _)) = subjects.try_next().await.map_err(failed)? {
            numbers.extend(subject.rsplit('.').next().and_then(|word| word.parse::<u32>().ok()));
        }
        Ok(numbers)
    }

    /// A put that fails half way leaves pieces behind: better not to begin it.
    async fn check_room(&self, bytes: usize) -> Result<(), QueueError> {
        let stream = self.context.get_stream(format!("OBJ_{OBJECTS}")).await.map_err(failed)?;
        let info = stream.cached_info();
        let (limit, used) = (info.config.max_bytes, info.state.bytes);
        match u64::try_from(limit) {
            Ok(limit) if limit > 0 && used.saturating_add(bytes as u64).saturating_add(1 << 12) > limit => {
                Err(QueueError::Full { reason: format!("{used} bytes of {limit} are taken, and {bytes} are to come") })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        // What was only sent, such as a unit given back, is to arrive.
        let client = self.context.client();
        let _ = self.wait(ANSWER, async { client.flush().await.map_err(failed) });
    }
}

fn options_of(access: &Access) -> Result<ConnectOptions, QueueError> {
    let mut options = ConnectOptions::new().name("rashomon").connection_timeout(ANSWER).max_reconnects(None);
    options = options.reconnect_delay_callback(|attempts| Duration::from_millis(100 * (attempts.min(20) as u64)));
    if access.address.is_encrypted {
        options = options.require_tls(true);
    }
    if let Some(path) = &access.authority {
        // Else a file that is not there would be told as a server that cannot be reached.
        rashomon_files::read(path, rashomon_files::Links::Followed, 1 << 20).map_err(QueueError::io("read", path))?;
        options = options.add_root_certificates(path.clone());
    }
    Ok(match access.login()? {
        None => options,
        Some(Login::Token(token)) => options.token(token),
        Some(Login::User(user, password)) => options.user_and_password(user, password),
        Some(Login::Signed(text)) => {
            options.credentials(&text).map_err(|error| QueueError::damaged("the file of credentials", error.to_string()))?
        }
    })
}

/// An error with all its causes, each once.
fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        let more = one.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = one.source();
    }
    text
}

/// What of the server's answers does not pass. All else may be a server that is not there, or not ready.
fn failed(error: impl std::error::Error) -> QueueError {
    const FULL: [&str; 5] = [
        "insufficient storage",
        "insufficient resources",
        "maximum bytes exceeded",
        "resource limits exceeded",
        "maximum messages exceeded",
    ];
    let reason = words(&error);
    if FULL.iter().any(|full| reason.to_lowercase().contains(full)) {
        return QueueError::Full { reason };
    }
    if reason.contains("jetstream not enabled") || reason.contains("JetStream not enabled") {
        // So does a server speak that has just started.
        return QueueError::NoAnswer { reason: format!("{reason}; it is to be started with -js") };
    }
    QueueError::NoAnswer { reason }
}

impl Exchange for Nats {
    fn open_job(&self, job: &str) -> Result<(), QueueError> {
        self.wait(ANSWER * 3, async {
            self.prepare().await?;
            self.jobs().await?.put(job, "open".into()).await.map_err(failed)?;
            Ok(())
        })
    }

    fn is_open(&self, job: &str) -> Result<bool, QueueError> {
        self.wait(ANSWER, async { Ok(self.jobs().await?.get(job).await.map_err(failed)?.is_some()) })
    }

    fn close_job(&self, job: &str) -> Result<(), QueueError> {
        self.wait(ANSWER * 2, async {
            self.jobs().await?.purge(job).await.map_err(failed)?;
            self.units().await?.purge().filter(format!("{SUBJECT}.{job}.>")).await.map_err(failed)?;
            let filter = format!("$KV.{OUTCOMES}.{job}.>");
            self.outcomes().await?.stream.purge().filter(filter).await.map_err(failed)?;
            Ok(())
        })
    }

    fn announce(&self, job: &str, more: bool) -> Result<(), QueueError> {
        self.wait(ANSWER * 2, async {
            let jobs = self.jobs().await?;
            if more {
                jobs.put(MORE, job.to_owned().into()).await.map_err(failed)?;
            } else if jobs.get(MORE).await.map_err(failed)?.is_some_and(|announced| announced == job.as_bytes()) {
                jobs.purge(MORE).await.map_err(failed)?;
            }
            Ok(())
        })
    }

    fn is_announced(&self) -> Result<bool, QueueError> {
        self.wait(ANSWER, async {
            // Before there was any job, nobody has made a place for them.
            let Ok(jobs) = self.jobs().await else { return Ok(false) };
            Ok(jobs.get(MORE).await.map_err(failed)?.is_some())
        })
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), QueueError> {
        self.wait(TRANSFER, async {
            self.check_room(bytes.len()).await?;
            let mut reader = bytes;
            self.objects().await?.put(name, &mut reader).await.map_err(failed)?;
            Ok(())
        })
    }

    /// Piece by piece, since the client's own reader of objects panics where the server goes away.
    fn fetch(&self, name: &str, most: u64) -> Result<Vec<u8>, QueueError> {
        let missing = || QueueError::Missing { what: format!("object {name}") };
        self.wait(TRANSFER, async {
            let info = self.objects().await?.info(name).await.map_err(|error| match error.kind() {
                object_store::InfoErrorKind::NotFound => missing(),
                _ => failed(error),
            })?;
            if info.deleted {
                return Err(missing());
            }
            let size = info.size as u64;
            if size > most {
                return Err(QueueError::TooLarge(format!("object {name} has {size} bytes, more than the {most} that were told")));
            }
            let stream = self.context.get_stream_no_info(format!("OBJ_{OBJECTS}")).await.map_err(failed)?;
            let subject = format!("$O.{OBJECTS}.C.{}", info.nuid);
            let (mut bytes, mut next) = (Vec::new(), 1);
            for _ in 0..info.chunks {
                let piece =
                    stream.direct_get_next_for_subject(&subject, Some(next)).await.map_err(|error| match error.kind() {
                        stream::DirectGetErrorKind::NotFound => missing(),
                        _ => failed(error),
                    })?;
                bytes.extend_from_slice(&piece.payload);
                next = piece.sequence + 1;
                if bytes.len() as u64 > most {
                    return Err(QueueError::TooLarge(format!("object {name} has more than {most} bytes")));
                }
            }
            if bytes.len() as u64 == size { Ok(bytes) } else { Err(QueueError::damaged(name, "pieces of it are missing")) }
        })
    }

    fn discard(&self, name: &str) -> Result<(), QueueError> {
        self.wait(ANSWER * 2, async {
            match self.objects().await?.delete(name).await {
                Err(error) if error.kind() != object_store::DeleteErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            }
        })
    }

    fn publish(&self, job: &str, number: u32, attempt: u32, message: &[u8]) -> Result<(), QueueError> {
        self.wait(ANSWER * 2, async {
            let id = format!("{job}.{number}.{attempt}");
            let message = PublishMessage::build().payload(message.to_vec().into()).message_id(id);
            let sent = self.context.send_publish(format!("{SUBJECT}.{job}.{number}"), message).await.map_err(failed)?;
            sent.await.map_err(failed)?;
            Ok(())
        })
    }

    fn queued(&self, job: &str) -> Result<BTreeSet<u32>, QueueError> {
        self.wait(ANSWER * 2, async { self.numbers(&self.units().await?, &format!("{SUBJECT}.{job}")).await })
    }

    fn take(&self, within: Duration) -> Result<Option<Box<dyn Taken>>, QueueError> {
        let taken = self.wait(within + ANSWER * 2, async {
            let consumer = self.consumer().await?;
            let mut batch = consumer.batch().max_messages(1).expires(within).messages().await.map_err(failed)?;
            match batch.next().await {
                None => Ok(None),
                Some(Ok(message)) => Ok(Some(message)),
                Some(Err(error)) => Err(QueueError::NoAnswer { reason: error.to_string() }),
            }
        });
        Ok(taken?.map(|message| -> Box<dyn Taken> { Box::new(TakenMessage { handle: self.handle.clone(), message }) }))
    }

    fn conclude(&self, job: &str, number: u32, outcome: &[u8]) -> Result<bool, QueueError> {
        self.wait(ANSWER * 2, async {
            match self.outcomes().await?.create(format!("{job}.{number}"), outcome.to_vec().into()).await {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(failed(error)),
            }
        })
    }

    fn concluded(&self, job: &str) -> Result<BTreeSet<u32>, QueueError> {
        self.wait(ANSWER * 2, async { self.numbers(&self.outcomes().await?.stream, &format!("$KV.{OUTCOMES}.{job}")).await })
    }

    fn concluded_after(&self, job: &str, position: u64) -> Result<(BTreeSet<u32>, u64), QueueError> {
        let subject = format!("$KV.{OUTCOMES}.{job}.*");
        self.wait(TRANSFER, async {
            let stream = self.outcomes().await?.stream;
            let (mut numbers, mut position) = (BTreeSet::new(), position);
            loop {
                match stream.direct_get_next_for_subject(&subject, Some(position + 1)).await {
                    Ok(message) => {
                        numbers.extend(message.subject.rsplit('.').next().and_then(|word| word.parse::<u32>().ok()));
                        position = message.sequence;
                    }
                    Err(error) if error.kind() == stream::DirectGetErrorKind::NotFound => return Ok((numbers, position)),
                    Err(error) => return Err(failed(error)),
                }
            }
        })
    }

    fn outcome(&self, job: &str, number: u32) -> Result<Option<Vec<u8>>, QueueError> {
        self.wait(ANSWER * 2, async {
            let found = self.outcomes().await?.get(format!("{job}.{number}")).await.map_err(failed)?;
            Ok(found.map(|bytes| bytes.to_vec()))
        })
    }

    fn reopen(&self, job: &str, number: u32) -> Result<(), QueueError> {
        self.wait(ANSWER * 2, async { self.outcomes().await?.purge(format!("{job}.{number}")).await.map_err(failed) })
    }
}

struct TakenMessage {
    handle: Handle,
    message: jetstream::Message,
}

impl TakenMessage {
    fn answer(&self, kind: AckKind) -> Result<(), QueueError> {
        let no_answer = |reason: String| QueueError::NoAnswer { reason };
        self.handle.block_on(async {
            match tokio::time::timeout(ANSWER, self.message.double_ack_with(kind)).await {
                Ok(result) => result.map_err(|error| no_answer(error.to_string())),
                Err(_) => Err(no_answer("it does not confirm".into())),
            }
        })
    }
}

impl Taken for TakenMessage {
    fn message(&self) -> &[u8] {
        &self.message.payload
    }

    fn deliveries(&self) -> u64 {
        self.message.info().map_or(1, |info| u64::try_from(info.delivered).unwrap_or(1))
    }

    fn renew(&self) -> Result<(), QueueError> {
        self.answer(AckKind::Progress)
    }

    fn done(&self) -> Result<(), QueueError> {
        self.answer(AckKind::Ack)
    }

    fn give_back(&self, after: Duration) -> Result<(), QueueError> {
        self.answer(AckKind::Nak(Some(after)))
    }
}
