//! What lies on a stack is called by the variable, what lies in a member of a member by the whole path, and input that came from
//! outside by where it came from.

use crate::support::place::{Place, is_installed};
use std::process::Stdio;

/// A deadlock of two locks in `main`'s variables, and a race in a variable of a function that has returned before.
const ACCOUNTS: &str = "\
#include <mutex>
#include <thread>
struct Account { std::mutex lock; long balance = 0; };
static void move(Account &from, Account &to) {
    std::lock_guard<std::mutex> one(from.lock);
    std::lock_guard<std::mutex> other(to.lock);
    from.balance--;
}
__attribute__((noinline)) static void uses_the_stack(long count) {
    volatile long other[64];
    for (long i = 0; i < 64; i++) other[i] = count;
}
__attribute__((noinline)) static long counts() {
    long hits[4] = {0};
    std::thread helper([&hits] { hits[2]++; });
    hits[2]++;
    helper.join();
    return hits[2];
}
int main() {
    uses_the_stack(3);
    long hits = counts();
    Account alice, bob;
    std::thread a([&] { move(alice, bob); });
    std::thread b([&] { move(bob, alice); });
    a.join(); b.join();
    return hits == 0;
}
";

#[test]
fn variables_of_functions_have_names() {
    let place = Place::new();
    place.write("accounts.cpp", ACCOUNTS);
    for compiler in ["g++", "clang++-19"].into_iter().filter(|compiler| is_installed(compiler)) {
        for level in ["-O0", "-O1"] {
            let mut build = place.tool(&["c++", "-std=c++17", "-g", level, "-pthread", "-o", "accounts", "accounts.cpp"]);
            build.env("RASHOMON_CXX", compiler);
            place.run(build).expect(0, &[]);
            let ended = place.rashomon(&["check", "--budget", "15", "--", "./accounts"]).expect(
                66,
                &[
                    "]: mutex alice.lock of main, mutex bob.lock of main",
                    "waits for mutex bob.lock of main, held by thread 2",
                    "holding mutex alice.lock of main, taken at",
                ],
            );
            // clang leaves out what it takes to stay within the function.
            let races = ended.err.contains("]: local hits[2] of counts (8 bytes)");
            assert!(races || compiler != "g++", "{ended}");
        }
    }
}

#[test]
fn a_variable_of_a_created_thread_is_called_with_the_thread() {
    let place = Place::new();
    let program = "#include <pthread.h>
        static void *inner(void *count) { ++*(int *)count; return 0; }
        static void *outer(void *unused) { int count = 0; pthread_t t; pthread_create(&t, 0, inner, &count); count++;
        pthread_join(t, 0); return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, outer, 0); pthread_join(t, 0); return 0; }";
    place.compile("nested", program);
    place
        .rashomon(&["check", "--budget", "10", "--", "./nested"])
        .expect(66, &["]: local count of outer (thread 0) (4 bytes)", "thread 0.0: "]);
}

#[test]
fn members_of_members_have_names() {
    let place = Place::new();
    let program = "#include <pthread.h>
        #include <stdlib.h>
        struct stats { long hits, misses; };
        struct cache { char name[24]; struct stats stats; };
        __attribute__((noinline)) static void hit(struct stats *stats) { stats->hits++; }
        __attribute__((noinline)) static void *get(void *argument) {
        struct cache *cache = argument; hit(&cache->stats); return 0; }
        int main(void) { pthread_t t; struct cache *cache = calloc(1, sizeof *cache);
        pthread_create(&t, 0, get, cache); get(cache); pthread_join(t, 0); return 0; }";
    place.compile("cache", program);
    place.rashomon(&["check", "--budget", "10", "--", "./cache"]).expect(66, &["]: cache::stats.hits (8 bytes) in heap block"]);
}

#[test]
fn input_from_outside_is_named() {
    let place = Place::new();
    let program = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { char text[8]; return read(0, text, 8) < 0; }\n";
    place.compile("asks", program);
    let mut check = place.tool(&["check", "--budget", "5", "--", "./asks"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    check.stdin(Stdio::from(reader));
    place.run(check).expect(0, &["external input from a pipe (descriptor 0, standard input), to main (asks.c:3)"]);
}
