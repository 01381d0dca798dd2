//! Connections of TCP that a program has with itself: what is written to one orders those who read from it, and nobody else.

use crate::support::place::Place;

fn download(seeded: bool) -> String {
    let define = if seeded { "#define SEEDED\n" } else { "" };
    format!("{define}{}", include_str!("../../../../tests/applications/download.c"))
}

/// Each thread closes its own connection behind its last access. No schedule orders that before what another one reads.
#[test]
fn closing_one_connection_orders_no_reader_of_another() {
    let place = Place::new();
    place.compile("download", &download(true));
    place.rashomon(&["detect", "--", "./download"]).expect(66, &["data race", "global progress"]);
}

#[test]
fn a_race_behind_connections_is_predicted_and_proven() {
    let place = Place::new();
    place.compile("download", &download(true));
    place.rashomon(&["record", "--recordings", "4", "--output", "store", "--", "./download"]);
    place.rashomon(&["confirm", "--engine", "csp", "store"]).expect(66, &["proven", "global progress"]);
    let enforced = place.rashomon(&["csp", "enforce", "store"]).expect(66, &[]);
    for words in ["confirmed, data race", "download.c:43 and download.c:43"] {
        assert!(enforced.out.contains(words), "{enforced}");
    }
}

/// `x` goes to and fro with a byte. The first one may be written before the connection is accepted, and is read behind it.
const PASSED: &str = "#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
static struct sockaddr_in address;
static int listener, x;
static void *answer(void *unused) {
    char byte;
    int client = accept(listener, NULL, NULL);
    if (read(client, &byte, 1) != 1) return NULL;
    x++;
    if (write(client, &byte, 1) != 1) return NULL;
    close(client);
    return unused;
}
int main(void) {
    pthread_t thread;
    char byte = 1;
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1)) return 2;
    getsockname(listener, (struct sockaddr *)&address, &length);
    pthread_create(&thread, NULL, answer, NULL);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, length)) return 2;
    x = 1;
    if (write(server, &byte, 1) != 1 || read(server, &byte, 1) != 1) return 2;
    x++;
    pthread_join(thread, NULL);
    return x != 3;
}
";

#[test]
fn what_is_passed_along_a_connection_is_ordered() {
    let place = Place::new();
    place.compile("passed", PASSED);
    place.rashomon(&["detect", "--", "./passed"]).expect(0, &[]);
    place.rashomon(&["check", "--budget", "10", "--", "./passed"]).expect(0, &[]);
}
