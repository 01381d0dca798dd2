//! A finding under gdb, lldb and in editors: the same stops and the same commands; and back to turns, where all is as it was.

use crate::support::place::{Place, gdb_works, lldb_works, program_text, statuses, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any answer of a debugger takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two threads race in line 12, after steps under a lock, whose number is an argument.
const STEPS: &str = "#include <pthread.h>
#include <stdlib.h>
static int steps, x;
static int most;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *task(void *unused) {
    for (int i = 0; i < most; i++) {
        pthread_mutex_lock(&lock);
        steps++;
        pthread_mutex_unlock(&lock);
    }
    x++;
    return 0;
}
int main(int count, char **arguments) {
    pthread_t threads[2];
    most = count == 3 ? atoi(arguments[2]) : 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, task, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
";

/// Checks the program; the id of its race.
fn race_of(place: &Place) -> String {
    place.write("steps.c", STEPS);
    place.rashomon(&["cc", "-g", "-O1", "-pthread", "-o", "steps", "steps.c"]).expect(0, &[]);
    place.rashomon(&["record", "-o", "store", "--", "./steps", "two words", "3"]).expect(0, &[]);
    place.rashomon(&["confirm", "--fail-on", "never", "--json", "report.json", "store"]).expect(0, &["1 proven"]);
    statuses(&place.json("report.json")).remove(0).0
}

/// Runs a debugger with these commands after the first stop; what was printed after each.
fn session(place: &Place, id: &str, debugger: &str, commands: &[&str]) -> Vec<String> {
    const MARK: &str = "==next==";
    let (batch, option, mark) = match debugger {
        "--gdb" => ("-batch", "-ex", format!("echo {MARK}\\n")),
        _ => ("-b", "-o", format!("script print('{MARK}')")),
    };
    let mut line = vec!["replay", "--store", "store", id, debugger, "--", batch];
    for command in commands {
        line.extend([option, command, option, &mark]);
    }
    let ended = place.rashomon(&line);
    assert!(ended.out.contains("the finding has come about"), "{ended}");
    // lldb prints commands, too.
    let lines = ended.out.lines().filter(|line| !line.starts_with("(lldb)"));
    let mut parts = vec![String::new()];
    for line in lines {
        if line == MARK {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    assert_eq!(parts.len(), commands.len() + 1, "{ended}");
    parts
}

/// What `rashomon threads` and the values of variables say, by the number of turns that are over.
fn by_turns(parts: &[String]) -> BTreeMap<u64, String> {
    let of = |part: &String| {
        let at = part.find("after ").filter(|_| part.contains("steps="))?;
        let number = part[at..].split(' ').nth(1)?.parse().ok()?;
        // A debugger counts the threads that it has seen.
        let words = part[at..].split("'s thread ").enumerate().map(|(place, words)| match words.split_once(')') {
            Some((_, behind)) if place > 0 => behind,
            _ => words,
        });
        Some((number, words.collect()))
    };
    parts.iter().filter_map(of).collect()
}

/// Forward through some turns, and back to one by its number and to another by how far it is, with a snapshot and without: the
/// same threads are at the same places, and variables have the same values.
fn goes_back(debugger: &str, state: &str) {
    let place = Place::new();
    let id = race_of(&place);
    let mut commands = vec!["rashomon threads", "rashomon back-to 0"];
    for _ in 0..8 {
        commands.extend(["rashomon step-turn", state]);
    }
    let parts = session(&place, &id, debugger, &commands);
    let forward = by_turns(&parts);
    let turns: Vec<u64> = forward.keys().copied().collect();
    assert!(turns.len() >= 6, "{parts:#?}");
    assert!(forward.values().any(|state| state.contains("steps.c:12")), "{forward:#?}");
    let values: Vec<&str> = forward.values().filter_map(|state| state.split("steps=").nth(1)).collect();
    assert!(values.first() != values.last(), "the program got on: {forward:#?}");
    let (late, early) = (turns[turns.len() - 1], turns[turns.len() - 4]);
    let (to_late, back) = (format!("rashomon back-to {late}"), format!("rashomon back-to -{}", late - early));
    let parts = session(&place, &id, debugger, &[&to_late, state, &back, state]);
    let states = by_turns(&parts);
    let expected = [early, late].map(|turn| (turn, forward[&turn].clone())).into();
    assert_eq!(states, expected, "{parts:#?}");
    assert!(!parts.concat().contains("from the snapshot"), "none was asked for, nor due: {parts:#?}");
    let begin = ["rashomon back-to 0", "rashomon snapshot", "rashomon step-turn", "rashomon step-turn"];
    let parts = session(&place, &id, debugger, &[&begin[..], &[&to_late, state, &back, state, "continue"]].concat());
    assert_eq!(by_turns(&parts), expected, "{parts:#?}");
    for part in [&parts[begin.len()], &parts[begin.len() + 2]] {
        assert!(part.contains("from the snapshot after "), "{parts:#?}");
    }
    let last = &parts[begin.len() + 4];
    assert!(last.contains("exited normally") || last.contains("exited with status = 0"), "{parts:#?}");
}

#[test]
fn gdb_goes_back_to_a_turn_and_all_is_as_it_was() {
    if gdb_works(&Place::new()) {
        goes_back("--gdb", "python gdb.execute('rashomon threads'); gdb.execute('printf \"steps=%d x=%d\\\\n\", steps, x')");
    }
}

#[test]
fn lldb_goes_back_to_a_turn_and_all_is_as_it_was() {
    if lldb_works(&Place::new()) {
        let run =
            "run = lambda line: (lldb.debugger.GetCommandInterpreter().HandleCommand(line, r), print(r.GetOutput().strip()))";
        let values = "print('steps=' + ' x='.join(lldb.target.FindFirstGlobalVariable(n).GetValue() for n in ('steps', 'x')))";
        goes_back("--lldb", &format!("script r = lldb.SBCommandReturnObject(); {run}; _ = run('rashomon threads'); {values}"));
    }
}

/// What users type at the finding, in each debugger.
fn stops_in_the_users_frame(debugger: &str, stack: &str) {
    let place = Place::new();
    let id = race_of(&place);
    let commands = [stack, "rashomon threads", "rashomon watch", "continue", stack];
    let parts = session(&place, &id, debugger, &commands);
    assert!(parts[0].contains("write of 4 bytes\n") && parts[0].contains("read of 4 bytes\n"), "{parts:#?}");
    assert!(parts[0].contains("steps.c:12"), "{parts:#?}");
    assert_eq!(parts[1].matches("; stood at the finding").count(), 2, "{parts:#?}");
    assert!(parts[1].contains("main thread (") && parts[1].contains("main steps.c:"), "{parts:#?}");
    assert!(parts[2].to_lowercase().contains("watchpoint"), "{parts:#?}");
    let hit = parts[3].clone() + &parts[4];
    assert!(hit.to_lowercase().contains("watchpoint") && hit.contains("steps.c:12"), "{parts:#?}");
}

#[test]
fn gdb_has_the_sessions_commands() {
    if gdb_works(&Place::new()) {
        stops_in_the_users_frame("--gdb", "bt");
    }
}

#[test]
fn lldb_has_the_sessions_commands() {
    if lldb_works(&Place::new()) {
        stops_in_the_users_frame("--lldb", "frame select");
    }
}

/// Who comes to the breakpoint there is the thread that sees the deadlock.
#[test]
fn lldb_selects_a_thread_of_a_deadlock() {
    let place = Place::new();
    if !lldb_works(&place) {
        return;
    }
    place.write("locks.c", program_text("measured/potential_deadlock.c"));
    place.rashomon(&["cc", "-g", "-O1", "-pthread", "-o", "locks", "locks.c"]).expect(0, &[]);
    place.rashomon(&["record", "-o", "store", "--", "./locks"]).expect(0, &[]);
    place.rashomon(&["confirm", "--fail-on", "never", "store"]).expect(0, &["1 proven"]);
    let parts = session(&place, "deadlock", "--lldb", &["frame select", "rashomon threads"]);
    assert!(parts[0].contains(": waits for mutex ") && parts[0].contains(" at locks.c:"), "{parts:#?}");
    assert_eq!(parts[1].matches("; stood at the finding").count(), 2, "{parts:#?}");
}

#[test]
fn a_debugger_that_is_missing_and_a_turn_without_one() {
    let place = Place::new();
    let id = race_of(&place);
    let mut command = place.tool(&["replay", "--store", "store", &id, "--lldb"]);
    command.env("PATH", place.path("empty"));
    place.run(command).expect(125, &["lldb is not installed", "replay without --lldb"]);
    place.rashomon(&["replay", "--store", "store", &id, "--back-to", "1"]).expect(2, &["--gdb"]);
}

/// A program that is asked and answers, with lines or messages.
struct Talk<T> {
    child: Child,
    input: ChildStdin,
    said: Receiver<T>,
    heard: Vec<T>,
}

impl<T: Send + std::fmt::Debug + 'static> Talk<T> {
    /// `next` takes one piece of what it says.
    fn with(mut command: Command, next: impl Fn(&mut dyn std::io::BufRead) -> Option<T> + Send + 'static) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is installed");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (sender, said) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(piece) = next(&mut output) {
                if sender.send(piece).is_err() {
                    break;
                }
            }
        });
        Self { child, input, said, heard: Vec::new() }
    }

    /// The next piece that is wanted.
    #[track_caller]
    fn wait<U>(&mut self, what: &str, wanted: impl Fn(&T) -> Option<U>) -> U {
        loop {
            let Ok(piece) = self.said.recv_timeout(PATIENCE) else { panic!("no {what}, but {:#?}", self.heard) };
            let found = wanted(&piece);
            self.heard.push(piece);
            if let Some(found) = found {
                return found;
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).and_then(|()| self.input.flush()).expect("it listens");
    }
}

impl<T> Drop for Talk<T> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The configuration of this type in the printed `launch.json`.
fn configuration(place: &Place, arguments: &[&str], kind: &str) -> Value {
    let line = [&["replay", "--store", "store"], arguments, &["--vscode"]].concat();
    let launch: Value = serde_json::from_str(&place.rashomon(&line).expect(0, &[]).out).expect("JSON alone");
    let configurations = launch["configurations"].as_array().expect("a list");
    configurations.iter().find(|one| one["type"] == kind).expect("it is there").clone()
}

/// An adapter that speaks DAP.
struct Adapter {
    talk: Talk<Value>,
    sent: u64,
}

impl Adapter {
    fn start(path: &str, folder: &Path) -> Self {
        let mut command = Command::new(path);
        command.current_dir(folder);
        let talk = Talk::with(command, |output| {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if output.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                match line.trim().split_once(':') {
                    Some((_, number)) => length = number.trim().parse().ok()?,
                    None => break,
                }
            }
            let mut body = Vec::new();
            output.take(length).read_to_end(&mut body).ok()?;
            serde_json::from_slice(&body).ok()
        });
        Self { talk, sent: 0 }
    }

    fn send(&mut self, command: &str, arguments: &Value) {
        self.sent += 1;
        let body = json!({ "seq": self.sent, "type": "request", "command": command, "arguments": arguments }).to_string();
        self.talk.write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    #[track_caller]
    fn ask(&mut self, command: &str, arguments: &Value) -> Value {
        self.send(command, arguments);
        let number = self.sent;
        self.talk
            .wait(command, |said| (said["type"] == "response" && said["request_seq"] == number).then(|| said["body"].clone()))
    }

    /// The thread that came to a breakpoint.
    #[track_caller]
    fn stopped(&mut self) -> Value {
        let stop = |said: &Value| said["event"] == "stopped" && said["body"]["reason"] == "breakpoint";
        self.talk.wait("stop", |said| stop(said).then(|| said["body"]["threadId"].clone()))
    }

    /// Functions and lines of the user's frames, as the editor shows them.
    #[track_caller]
    fn users_frames(&mut self, thread: &Value) -> Vec<(String, u64)> {
        let stack = self.ask("stackTrace", &json!({ "threadId": thread }));
        let frames = stack["stackFrames"].as_array().expect("a list");
        let users = frames.iter().filter(|frame| frame["source"]["name"] == "steps.c");
        users.map(|frame| (frame["name"].as_str().unwrap_or_default().to_owned(), frame["line"].as_u64().unwrap_or(0))).collect()
    }
}

#[test]
fn an_editor_stops_at_the_finding_by_dap_and_starts_again() {
    let place = Place::new();
    if !lldb_works(&place) {
        return;
    }
    let id = race_of(&place);
    let launch = configuration(&place, &[&id], "lldb-dap");
    let mut adapter =
        Adapter::start(launch["debugAdapterExecutable"].as_str().expect("lldb-dap is beside lldb"), &place.path(""));
    adapter.ask("initialize", &json!({ "adapterID": "lldb-dap" }));
    adapter.send("launch", &launch);
    adapter.talk.wait("initialized", |said| (said["event"] == "initialized").then_some(()));
    adapter.ask("configurationDone", &json!({}));
    let thread = adapter.stopped();
    assert_eq!(adapter.users_frames(&thread), [("task".to_owned(), 12)]);
    let repl = |line: &str| json!({ "expression": line, "context": "repl" });
    let said = adapter.ask("evaluate", &repl("rashomon threads"))["result"].to_string();
    assert_eq!(said.matches("stood at the finding").count(), 2, "{said}");
    for (line, answer) in [("rashomon nonsense", "rashomon step-turn: on"), ("rashomon back-to x", "say a turn, such as 12")] {
        let said = adapter.ask("evaluate", &repl(line))["result"].to_string();
        assert!(said.contains(answer), "{said}");
    }
    adapter.send("evaluate", &repl("rashomon step-turn"));
    adapter.stopped();
    let said = adapter.ask("evaluate", &repl("rashomon back-to 0"))["result"].to_string();
    assert!(said.contains("restart the program in the editor"), "{said}");
    adapter.ask("restart", &json!({}));
    adapter.stopped();
    let said = adapter.ask("evaluate", &repl("rashomon threads"))["result"].to_string();
    assert!(said.contains("after 0 turns"), "{said}");
    adapter.ask("restart", &json!({}));
    let thread = adapter.stopped();
    assert_eq!(adapter.users_frames(&thread), [("task".to_owned(), 12)]);
    adapter.ask("disconnect", &json!({ "terminateDebuggee": true }));
    let ended = wait_for("lldb-dap to end", || adapter.talk.child.try_wait().expect("it is ours"));
    assert!(ended.success(), "{ended}");
}

/// What the extension cpptools sends gdb for its configuration, in this order.
fn lines_of_cpptools(launch: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let setup = launch["setupCommands"].as_array().into_iter().flatten().map(|one| text(&one["text"]));
    let setup = setup.map(|line| if line.starts_with('-') { line } else { format!("-interpreter-exec console {}", json!(line)) });
    let arguments: Vec<String> = launch["args"].as_array().into_iter().flatten().map(text).collect();
    let mut lines: Vec<String> = setup.collect();
    lines.push(format!("-environment-cd {}", text(&launch["cwd"])));
    lines.push(format!("-file-exec-and-symbols {}", text(&launch["program"])));
    lines.push(format!("-exec-arguments {}", arguments.join(" ")));
    lines
}

#[test]
fn an_editor_stops_at_the_finding_by_gdbs_machine_interface() {
    let place = Place::new();
    if !gdb_works(&place) {
        return;
    }
    let id = race_of(&place);
    let launch = configuration(&place, &[&id, "--back-to", "1"], "cppdbg");
    let mut gdb = place.command("gdb", &["-nx", "-q", "--interpreter=mi3"]);
    gdb.env_remove("LD_LIBRARY_PATH");
    let mut gdb = Talk::with(gdb, |output| {
        let mut line = String::new();
        (output.read_line(&mut line).ok()? > 0).then_some(line)
    });
    for line in lines_of_cpptools(&launch) {
        gdb.write(format!("{line}\n").as_bytes());
        let done = gdb.wait(&line, |said| said.starts_with('^').then(|| said.starts_with("^done")));
        assert!(done, "{line}: {:#?}", gdb.heard);
    }
    let stop = |said: &String| (said.starts_with("*stopped") && said.contains("reason=\"breakpoint-hit\"")).then_some(());
    gdb.write(b"-exec-run\n");
    gdb.wait("the turn", stop);
    gdb.wait("what it says", |said| said.contains("rashomon: after 1 turn ").then_some(()));
    gdb.write(b"-exec-continue\n");
    gdb.wait("the finding", stop);
    gdb.wait("what it says", |said| said.contains("rashomon: the finding has come about").then_some(()));
    gdb.write(b"-stack-list-frames\n");
    let stack = gdb.wait("a stack", |said| said.contains("stack=[").then(|| said.clone()));
    assert!(stack.contains("func=\"task\"") && stack.contains("line=\"12\""), "{stack}");
    gdb.write(b"-gdb-exit\n");
    wait_for("gdb to end", || gdb.child.try_wait().expect("it is ours"));
}
