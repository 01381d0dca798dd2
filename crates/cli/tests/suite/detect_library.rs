//! `rashomon detect`: what the C library does to the program's memory, and what it does to its own.

use crate::support::place::{Ended, Place};

/// Declarations that every program here may need.
const PRELUDE: &str = "#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <malloc.h>
#include <math.h>
#include <netdb.h>
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
extern char **environ;
";

#[track_caller]
fn detected(body: &str) -> Ended {
    let place = Place::new();
    place.compile("program", &format!("{PRELUDE}{body}"));
    place.rashomon(&["detect", "--format", "tsan", "-O", "atexit_sleep_ms=0", "--", "./program"])
}

#[track_caller]
fn silent(body: &str) {
    let ended = detected(body).expect(0, &[]);
    assert!(!ended.err.contains("ThreadSanitizer"), "{ended}");
}

/// What a function does, and the object that it does it to. The other thread touches the object with `other`, a plain access.
struct Case {
    function: &'static str,
    call: &'static str,
    other: &'static str,
}

const fn case(function: &'static str, call: &'static str, other: &'static str) -> Case {
    Case { function, call, other }
}

/// Objects of the cases. Those of the call are its own where the other thread does not touch them.
const OBJECTS: &str = "
static int x; static long l; static double d; static float f; static char text[64] = \"text 17\", name[64] = \".\"; \
    static wchar_t wide[64] = L\"wide\"; static struct tm date; static struct stat file;
static struct timespec span; static struct utsname machine; static struct rusage usage; static struct passwd user, *found; \
    static char *line, *end, *copy; static size_t room; static int numbers[64];
static struct sockaddr_in address; static socklen_t length; static pthread_t thread; static struct addrinfo *list; \
    static sigset_t signals; static unsigned short state[3]; static unsigned seed; static time_t now = 5;
static volatile int sink; static mbstate_t shift; static const char *place = \"abc\"; static char *rest;
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *nothing(void *p) { return 0; }
static void vprinted(char *to, const char *format, ...) { va_list list; va_start(list, format); vsnprintf(to, 64, format, \
    list); va_end(list); }
";

const CASES: &[Case] = &[
    // Scanned.
    case("sscanf", "sscanf(\"17 abc\", \"%d %*s\", &x)", "x++"),
    case("sscanf", "sscanf(\"17 abc 2.5\", \"%*d %15s %lf\", name, &d)", "d++"),
    case("sscanf", "sscanf(\"17 abc\", \"%ld%n\", &l, &x)", "x++"),
    case("sscanf", "sscanf(\"abc\", \"%3c\", name)", "name[2]++"),
    case("sscanf", "sscanf(text, \"%*s\")", "text[0]++"),
    case("fscanf", "FILE *s = fmemopen((char[]){\"17\"}, 2, \"r\"); fscanf(s, \"%d\", &x)", "x++"),
    // Printed.
    case("snprintf", "snprintf(text, 64, \"%d\", x)", "text[0]++"),
    case("sprintf", "sprintf(text, \"%d %s\", x, name)", "name[0]++"),
    case("vsnprintf", "vprinted(text, \"%d %s\", x, name)", "text[0]++"),
    case("vsnprintf", "vprinted(name, \"%.*s %2$\", 2, text)", "name[0]++"),
    case("fprintf", "fprintf(stdout, \"%5.1f %s\", d, text)", "text[0]++"),
    case("printf", "printf(\"%g%g%g%g%g%g%g%g%g%Lg%s\", d, d, d, d, d, d, d, d, d, (long double)d, text)", "text[0]++"),
    case("printf", "printf(\"%d%d%d%d%d%d%d%s\", 1, 2, 3, 4, 5, 6, 7, text)", "text[0]++"),
    case("asprintf", "asprintf(&copy, \"%d\", x)", "copy = 0"),
    case("swprintf", "swprintf(wide, 64, L\"%d\", x)", "wide[0]++"),
    // Streams.
    case("getdelim", "FILE *s = fmemopen((char[]){\"line\\n\"}, 5, \"r\"); getline(&line, &room, s)", "line = 0"),
    case("fgets", "FILE *s = fmemopen((char[]){\"line\\n\"}, 5, \"r\"); fgets(text, 64, s)", "text[1]++"),
    case("fread", "FILE *s = fmemopen((char[]){\"line\\n\"}, 5, \"r\"); fread(text, 1, 4, s)", "text[3]++"),
    case("fputs", "fputs(text, stdout)", "text[1]++"),
    // Times.
    case("localtime_r", "localtime_r(&now, &date)", "date.tm_year++"),
    case("gmtime_r", "gmtime_r(&now, &date)", "date.tm_year++"),
    case("gmtime_r", "struct tm own; gmtime_r(&now, &own)", "now++"),
    case("mktime", "mktime(&date)", "date.tm_wday++"),
    case("strftime", "strftime(text, 64, \"%Y\", &date)", "text[0]++"),
    case("strftime", "char own[64]; strftime(own, 64, \"%Y\", &date)", "date.tm_year++"),
    case("strptime", "strptime(\"2001\", \"%Y\", &date)", "date.tm_year++"),
    case("asctime_r", "asctime_r(&date, text)", "text[0]++"),
    case("time", "time(&now)", "now++"),
    case("clock_gettime", "clock_gettime(0, &span)", "span.tv_nsec++"),
    // Files.
    case("stat", "stat(\".\", &file)", "file.st_mode++"),
    case("stat", "struct stat own; stat(name, &own)", "name[0]++"),
    case("fstat", "fstat(0, &file)", "file.st_mode++"),
    case("getcwd", "getcwd(text, 64)", "text[0]++"),
    case("realpath", "char own[4096]; realpath(name, own)", "name[0]++"),
    case("readlink", "readlink(\"/proc/self/exe\", text, 64)", "text[0]++"),
    case("open64", "open64(name, O_RDONLY)", "name[0]++"),
    case("mkdir", "mkdir(name, 0)", "name[0]++"),
    case("pread", "int h = open(\"/proc/self/exe\", O_RDONLY); pread(h, text, 4, 0)", "text[3]++"),
    // Sockets.
    case(
        "getsockname",
        "length = sizeof address; getsockname(socket(AF_INET, SOCK_DGRAM, 0), (void *)&address, &length)",
        "address.sin_port++",
    ),
    case("getsockopt", "length = 4; getsockopt(socket(AF_INET, SOCK_DGRAM, 0), SOL_SOCKET, SO_TYPE, &x, &length)", "x++"),
    case("bind", "bind(-1, (void *)&address, sizeof address)", "address.sin_port++"),
    case("inet_pton", "inet_pton(AF_INET, \"127.0.0.1\", &address.sin_addr)", "address.sin_addr.s_addr++"),
    case("inet_ntop", "inet_ntop(AF_INET, &x, text, 64)", "text[0]++"),
    case("getaddrinfo", "getaddrinfo(\"127.0.0.1\", 0, 0, &list)", "list = 0"),
    // Numbers.
    case("strtol", "strtol(\"12x\", &end, 10)", "end = 0"),
    case("strtol", "sink = strtol(text + 5, 0, 10)", "text[6]++"),
    case("strtod", "d = strtod(\"12x\", &end)", "end = 0"),
    case("frexp", "volatile double v = 7; d = frexp(v, &x)", "x++"),
    case("rand_r", "sink = rand_r(&seed)", "seed++"),
    case("erand48", "d = erand48(state)", "state[1]++"),
    // Text.
    case("strcasecmp", "sink = strcasecmp(text, name)", "text[0]++"),
    case("strstr", "sink = !!strstr(text, name)", "text[6]++"),
    case("strtok_r", "strtok_r(text, \" \", &rest)", "text[4]++"),
    case("strsep", "char *from = text; strsep(&from, \" \")", "text[4]++"),
    case("wcscpy", "wcscpy(wide, L\"other\")", "wide[2]++"),
    case("mbstowcs", "mbstowcs(wide, \"abc\", 64)", "wide[2]++"),
    case("mbsrtowcs", "mbsrtowcs(wide, &place, 64, &shift)", "sink = !place"),
    case(
        "iconv",
        "char own[64], *to = own; size_t left = 3, more = 64; rest = text; \
            iconv(iconv_open(\"UTF-16\", \"UTF-8\"), &rest, &left, &to, &more)",
        "text[2]++",
    ),
    case("explicit_bzero", "explicit_bzero(text, 64)", "text[63]++"),
    // The rest.
    case("qsort", "qsort(numbers, 64, sizeof *numbers, compare)", "numbers[63]++"),
    case("uname", "uname(&machine)", "machine.sysname[0]++"),
    case("getrusage", "getrusage(RUSAGE_SELF, &usage)", "usage.ru_maxrss++"),
    case("getpwuid_r", "char own[4096]; getpwuid_r(0, &user, own, sizeof own, &found)", "found = 0"),
    case("sigfillset", "sigfillset(&signals)", "signals.__val[0]++"),
    case("pthread_create", "pthread_create(&thread, 0, nothing, 0), pthread_detach(thread)", "sink = thread == 7"),
    case("waitpid", "int child = fork(); if (!child) _exit(0); waitpid(child, &x, 0)", "x++"),
    case("gethostname", "gethostname(text, 64)", "text[0]++"),
];

/// Every case as a function of its own, which one thread executes while another makes the plain access, and which are then
/// executed one after the other.
fn program() -> String {
    let mut text = format!("{PRELUDE}#include <stdarg.h>\n{OBJECTS}");
    for (number, Case { call, other, .. }) in CASES.iter().enumerate() {
        text += &format!(
            "static void *call{number}(void *p) {{ {call}; return 0; \
                }} static void *other{number}(void *p) {{ {other}; return 0; }}\n"
        );
    }
    text += "static void *(*calls[])(void *) = {";
    (0..CASES.len()).for_each(|number| text += &format!("call{number},"));
    text += "}, *(*others[])(void *) = {";
    (0..CASES.len()).for_each(|number| text += &format!("other{number},"));
    text + "};
static void both(int at, int ordered) { pthread_t a, b; pthread_create(&a, 0, calls[at], 0); if (ordered) pthread_join(a, 0); \
    pthread_create(&b, 0, others[at], 0); if (!ordered) pthread_join(a, 0); pthread_join(b, 0); }
int main(int count, char **words) {
    alarm(60);
    if (count > 1) both(atoi(words[1]), 0);
    else for (int at = 0; at < sizeof calls / sizeof *calls; at++) { strcpy(text, \"text 17\"); strcpy(name, \".\"); \
    wcscpy(wide, L\"wide\"); both(at, 1); }
    return 0;
}
"
}

#[test]
fn what_functions_read_and_write() {
    let place = Place::new();
    place.compile("cases", &program());
    let mut unseen = Vec::new();
    for (number, Case { function, call, .. }) in CASES.iter().enumerate() {
        let ended =
            place.rashomon(&["detect", "--format", "tsan", "-O", "atexit_sleep_ms=0", "--", "./cases", &number.to_string()]);
        // Headers lead to other names of the same function.
        let race = ended.err.contains("WARNING: ThreadSanitizer: data race");
        let frame = ended.err.lines().any(|line| line.trim_start().starts_with("#0 ") && line.contains(function));
        if ended.code != 66 || !race || !frame {
            unseen.push(format!("{function}: {call}\n{ended}"));
        }
    }
    assert!(unseen.is_empty(), "{} of {} are not seen:\n{}", unseen.len(), CASES.len(), unseen.join("\n"));
    // In order, there is nothing to be said.
    let ended = place.rashomon(&["detect", "--format", "tsan", "-O", "atexit_sleep_ms=0", "--", "./cases"]).expect(0, &[]);
    assert!(!ended.err.contains("ThreadSanitizer"), "{ended}");
}

/// The bytes behind those that were asked for, in words that belonged to a longer block before.
#[test]
fn all_of_a_block_may_be_used() {
    silent(
        "int main(void) {
    for (int at = 0; at < 8; at++) { char *old = malloc(56); memset(old, at, 56); free(old); }
    char *block = malloc(44), *large = malloc(200001);
    size_t bytes = malloc_usable_size(block);
    if (bytes < 44) return 1;
    for (size_t at = 0; at < bytes; at++) block[at] = at;
    large[malloc_usable_size(large) - 1] = 1;
    block = realloc(block, 75);
    block[malloc_usable_size(block) - 1] = 1;
    free(block);
    free(large);
    return malloc_usable_size(0);
}",
    );
}

/// And not a byte more, nor later.
#[test]
fn the_rest_of_a_block_is_freed_with_it() {
    let ended = detected(
        "int main(void) { char *block = malloc(44); size_t bytes = malloc_usable_size(block); if (bytes < 56) return 0; \
            free(block); ((volatile char *)block)[50] = 1; return 0; }",
    );
    ended.expect(66, &["heap-use-after-free"]);
}

/// glibc hands lists of addresses from thread to thread behind a lock of its own.
#[test]
fn the_resolver() {
    silent(
        "static pthread_barrier_t barrier;
static void *task(void *p) {
    struct addrinfo hints = {.ai_flags = AI_ADDRCONFIG}, *list;
    pthread_barrier_wait(&barrier);
    for (int at = 0; at < 100; at++) if (!getaddrinfo(\"localhost\", \"80\", &hints, &list)) freeaddrinfo(list);
    return 0;
}
int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&barrier, 0, 4);
    for (int at = 0; at < 4; at++) pthread_create(threads + at, 0, task, 0);
    for (int at = 0; at < 4; at++) pthread_join(threads[at], 0);
    return 0;
}",
    );
}

/// Times, locales, streams and accounts have tables that glibc makes, replaces and frees as its threads go on.
#[test]
fn tables_of_the_library() {
    silent(
        "#include <locale.h>
static pthread_barrier_t barrier;
static void *task(void *p) {
    pthread_barrier_wait(&barrier);
    for (int at = 0; at < 50; at++) {
        time_t now = 1000000000; struct tm date; char text[256]; struct passwd user, *found;
        localtime_r(&now, &date);
        mktime(&date);
        strftime(text, sizeof text, \"%c %Z\", &date);
        getpwuid_r(0, &user, text, sizeof text, &found);
        locale_t locale = newlocale(LC_ALL_MASK, \"C.UTF-8\", 0);
        if (locale) freelocale(locale);
        FILE *stream = fopen(\"/dev/null\", \"r+\");
        fprintf(stream, \"%s %f\", text, 0.5);
        fgetc(stream);
        fclose(stream);
        strerror_r(2, text, sizeof text);
        free(realpath(\".\", 0));
        printf(\"%d\", 0);
    }
    return 0;
}
int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&barrier, 0, 4);
    for (int at = 0; at < 4; at++) pthread_create(threads + at, 0, task, 0);
    for (int at = 0; at < 4; at++) pthread_join(threads[at], 0);
    return 0;
}",
    );
}

/// What the library gave back is still freed memory.
#[test]
fn memory_that_the_library_freed() {
    let ended = detected(
        "int main(void) { struct addrinfo *list = 0; if (getaddrinfo(\"127.0.0.1\", \"80\", 0, &list)) return 66; \
            volatile struct addrinfo *gone = list; freeaddrinfo(list); return gone->ai_flags & 0; }",
    );
    ended.expect(66, &["heap-use-after-free", "    #0 free "]);
}

/// As `setproctitle` does: the kernel's texts of the environment are gone when the reporter is looked for.
#[test]
fn a_program_that_writes_over_its_environment() {
    let ended = detected(
        "static int x;
static void *task(void *p) { x++; return 0; }
int main(void) {
    static char *none[] = {0};
    char *first = environ[0];
    size_t bytes = 0;
    for (char **at = environ; *at; at++) bytes = *at + strlen(*at) + 1 - first;
    environ = none;
    memset(first, 'x', bytes - 1);
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_join(thread, 0);
    return 0;
}",
    );
    ended.expect(66, &["#0 task ", "program.c:", "#0 main "]);
}
