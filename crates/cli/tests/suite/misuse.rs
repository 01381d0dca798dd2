//! Wrong uses of locks and threads are findings of `check`: class, both places, text, JSON and exit code. What is right, or is
//! told apart by the system, is none.

use crate::support::place::Place;
use serde_json::Value;

const HEAD: &str = "#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t w = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void *nothing(void *unused) { return 0; }
static void *unlocks(void *unused) { pthread_mutex_unlock(&m); return 0; }
static void *takes(void *unused) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return 0; }
static pthread_t start(void *(*routine)(void *)) { pthread_t thread; pthread_create(&thread, 0, routine, 0); return thread; }
static pthread_mutex_t *checking(void) {
    static pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attributes);
    return &mutex;
}
";

/// Kind, subject and the lines of the sides.
type Found = (String, String, Vec<i64>);

/// The exit code of `check` of a `main` with this body, its report, and what it found. Lines are counted from the body's first.
fn report(body: &str, policy: &str) -> (i32, String, Vec<Found>) {
    let place = Place::new();
    let first = HEAD.lines().count() as i64 + 2;
    place.write("wrong.c", format!("{HEAD}int main(void) {{\n{body}\nreturn 0;\n}}\n"));
    place.rashomon(&["cc", "-g", "-O0", "-w", "-pthread", "-o", "wrong", "wrong.c"]).expect(0, &[]);
    let ended = place.rashomon(&["check", "--policy", policy, "--json", "report.json", "--", "./wrong"]);
    let report = place.json("report.json");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("findings are a list").iter().map(|finding| {
        assert_eq!((&finding["verdict"], &finding["grade"]), (&"proven".into(), &"observed".into()), "{finding}");
        let sides = finding["sides"].as_array().into_iter().flatten();
        let line = |side: &Value| {
            let frames = side["stack"].as_array().into_iter().flatten();
            let lines =
                frames.filter(|frame| text(&frame["file"]).ends_with("wrong.c")).filter_map(|frame| frame["line"].as_i64());
            lines.map(|line| line - first).next().unwrap_or(i64::MAX)
        };
        (text(&finding["kind"]), text(&finding["subject"]), sides.map(line).collect())
    });
    (ended.code, ended.err.clone(), findings.collect())
}

#[track_caller]
fn finds(body: &str, kind: &str, words: &str, subject: &str, lines: &[i64]) {
    for policy in ["random", "free"] {
        let (code, text, found) = report(body, policy);
        assert_eq!(found, [(kind.to_owned(), subject.to_owned(), lines.to_vec())], "{policy}: {text}");
        assert_eq!(code, 66, "{policy}: {text}");
        assert!(
            text.contains(&format!("{words} (proven, observed)")) && text.contains("the recorded execution did it"),
            "{text}"
        );
    }
}

#[track_caller]
fn finds_nothing(body: &str) {
    for policy in ["random", "free"] {
        let (code, text, found) = report(body, policy);
        assert!(found.is_empty() && code == 0, "{policy}: {code} {text}");
    }
}

/// A line of the head, where a finding's second place is there.
fn head(line: &str) -> i64 {
    HEAD.lines().position(|other| other.contains(line)).expect("a line of the head") as i64 - HEAD.lines().count() as i64 - 1
}

#[test]
fn an_unlock_by_another_thread() {
    let body = "pthread_mutex_lock(&m);\npthread_join(start(unlocks), 0);";
    finds(body, "unlock-not-held", "unlock of a lock that is not held", "mutex m", &[head("*unlocks"), 0]);
}

#[test]
fn an_unlock_of_what_nobody_holds() {
    finds("pthread_mutex_unlock(&m);", "unlock-not-held", "unlock of a lock that is not held", "mutex m", &[0]);
    let twice = "pthread_rwlock_rdlock(&w);\npthread_rwlock_unlock(&w);\npthread_rwlock_rdlock(&w);\npthread_rwlock_unlock(&w);";
    finds_nothing(twice);
}

#[test]
fn a_locked_mutex_destroyed() {
    let body = "pthread_mutex_lock(&m);\npthread_mutex_destroy(&m);\npthread_mutex_unlock(&m);";
    finds(body, "destroy-locked", "destruction of a locked lock", "mutex m", &[1, 0]);
}

#[test]
fn a_locked_mutex_freed() {
    let body = "pthread_mutex_t *l = malloc(sizeof *l);\npthread_mutex_init(l, 0);\npthread_mutex_lock(l);\nfree(l);";
    let (_, text, found) = report(body, "random");
    assert_eq!(found.len(), 1, "{text}");
    assert_eq!((found[0].0.as_str(), &found[0].2[..]), ("destroy-locked", &[3, 2][..]), "{text}");
}

#[test]
fn a_lock_taken_twice() {
    let place = Place::new();
    place.compile("wrong", &format!("{HEAD}int main(void) {{ pthread_mutex_lock(&m); pthread_mutex_lock(&m); return 0; }}"));
    place
        .rashomon(&["check", "--", "./wrong"])
        .expect(66, &["deadlock (proven, deadlocked)", "a double lock: the thread holds it already"]);
}

#[test]
fn what_a_checking_mutex_refuses_is_suspected() {
    let place = Place::new();
    let text = |body: &str| {
        place.compile("refused", &format!("{HEAD}int main(void) {{ pthread_mutex_t *l = checking(); {body} return 0; }}"));
        place.rashomon(&["check", "--show", "suspicions", "--", "./refused"]).expect(0, &["checks for errors, refused"]).err
    };
    assert!(text("pthread_mutex_lock(l); pthread_mutex_lock(l); pthread_mutex_unlock(l);").contains("double lock (suspected)"));
    assert!(text("pthread_mutex_unlock(l);").contains("unlock of a lock that is not held (suspected)"));
}

#[test]
fn a_destroyed_mutex_used() {
    let body = "pthread_mutex_destroy(&m);\npthread_mutex_lock(&m);";
    finds(body, "use-of-destroyed", "use after destruction", "mutex m", &[1, 0]);
    finds(
        "pthread_mutex_destroy(&m);\npthread_mutex_unlock(&m);",
        "use-of-destroyed",
        "use after destruction",
        "mutex m",
        &[1, 0],
    );
}

/// What lies behind what an allocator writes into free blocks looks as it did. It is freed in the third line, used in the fourth.
#[track_caller]
fn is_used_when_freed(body: &str) {
    let (code, text, found) = report(body, "random");
    assert_eq!(code, 66, "{text}");
    assert_eq!(
        found.iter().map(|(kind, _, lines)| (kind.as_str(), &lines[..])).collect::<Vec<_>>(),
        [("use-of-destroyed", &[3, 2][..])],
        "{text}"
    );
}

#[test]
fn a_freed_lock_used() {
    let body =
        "struct { char before[256]; pthread_rwlock_t lock; } *s = malloc(sizeof *s);\npthread_rwlock_init(&s->lock, 0);\nfree(s);
pthread_rwlock_rdlock(&s->lock);";
    is_used_when_freed(body);
}

#[test]
fn a_destroyed_condition_variable_used() {
    let finds = |body: &str| finds(body, "use-of-destroyed", "use after destruction", "condition variable c", &[1, 0]);
    finds("pthread_cond_destroy(&c);\npthread_cond_signal(&c);");
    finds("pthread_cond_destroy(&c);\npthread_cond_broadcast(&c);");
    finds("pthread_cond_destroy(&c);\npthread_cond_destroy(&c);");
}

#[test]
fn a_freed_condition_variable_used() {
    let body = "struct { char before[256]; pthread_cond_t c; } *s = calloc(1, sizeof *s);\npthread_cond_init(&s->c, 0);\nfree(s);
pthread_cond_signal(&s->c);";
    is_used_when_freed(body);
}

#[test]
fn threads_that_nobody_joins() {
    // The lock makes sure that the thread ends first: a serial execution hands over when main waits for the semaphore's post by a
    // joined one.
    let body = "start(nothing);\npthread_join(start(nothing), 0);\nfor (int i = 0; i < 100; i++) sched_yield();";
    let (code, text, found) = report(body, "round-robin");
    assert_eq!(found.iter().map(|(kind, ..)| kind.as_str()).collect::<Vec<_>>(), ["thread-leak"], "{text}");
    assert_eq!(code, 66, "{text}");
}

/// The program left it running: that it ended is the doing of the one who records.
#[test]
fn a_thread_that_ends_with_the_process_is_no_leak() {
    let (code, text, found) = report("start(nothing);", "run-to-block");
    assert!(found.is_empty() && code == 0, "{code} {text}");
}

#[test]
fn what_is_right_is_no_finding() {
    finds_nothing(
        "pthread_attr_t detached;
pthread_attr_init(&detached);
pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
pthread_t thread;
pthread_create(&thread, &detached, nothing, 0);
pthread_detach(start(nothing));
pthread_join(start(takes), 0);
pthread_mutex_destroy(&m);
m = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
pthread_join(start(takes), 0);
pthread_mutex_destroy(&m);
pthread_mutex_init(&m, 0);
pthread_join(start(takes), 0);
for (int i = 0; i < 100; i++) { pthread_mutex_t *l = malloc(sizeof *l); pthread_mutex_init(l, 0); pthread_mutex_lock(l); \
    pthread_mutex_unlock(l); pthread_mutex_destroy(l); free(l); }
pthread_rwlock_wrlock(&w); pthread_rwlock_unlock(&w);
struct timespec now = {0, 0};
pthread_mutex_lock(&m); pthread_cond_timedwait(&c, &m, &now); pthread_mutex_unlock(&m);
pthread_cond_destroy(&c);
c = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
pthread_cond_signal(&c);
pthread_cond_destroy(&c);
pthread_cond_init(&c, 0);
pthread_cond_broadcast(&c);
for (int i = 0; i < 9; i++) { pthread_cond_t *l = malloc(sizeof *l); pthread_cond_init(l, 0); pthread_cond_signal(l); \
    pthread_cond_destroy(l); free(l); }",
    );
}
