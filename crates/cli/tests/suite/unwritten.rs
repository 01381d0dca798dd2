//! Recordings that cannot be written to their end: the program goes on as it would have, and what is said is to blame.

use crate::support::place::{Ended, Place, is_installed};

/// Takes away what its recording needs, as the first argument says, and goes on with more than any thread's first piece of a
/// recording can hold. Ends with 0 if all came out right, and with 77 where the system does not let it take that away.
const PROGRAM: &str = "#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void *work(void *unused) {
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
static void lower(int resource, long to) {
    struct rlimit limit;
    getrlimit(resource, &limit);
    limit.rlim_cur = to;
    setrlimit(resource, &limit);
}
static int forbid(int error) {
    int calls[] = {SYS_open, SYS_openat, SYS_fallocate, SYS_ftruncate}, count = 0;
    struct sock_filter filter[16];
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < 4; i++) {
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {count, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
int main(int count, char **arguments) {
    const char *what = arguments[1], *folder = arguments[2];
    char command[5000];
    if (!strcmp(what, \"files\")) lower(RLIMIT_NOFILE, 3);
    if (!strcmp(what, \"size\")) lower(RLIMIT_FSIZE, 1000);
    if (!strcmp(what, \"filter\") && forbid(EPERM)) return 77;
    if (!strcmp(what, \"old filter\") && forbid(ENOSYS)) return 77;
    if (!strcmp(what, \"root\")) {
        /* By number, which nobody sees. */
        if (syscall(SYS_chroot, folder) && (unshare(CLONE_NEWUSER) || syscall(SYS_chroot, folder))) return 77;
    }
    if (!strcmp(what, \"jail\") && chroot(folder) && (unshare(CLONE_NEWUSER) || chroot(folder))) return 77;
    if (!strcmp(what, \"user\") && (chroot(folder) || setgid(65534) || setuid(65534))) return 77;
    if (!strcmp(what, \"deleted\")) {
        snprintf(command, sizeof command, \"rm -rf '%s'\", folder);
        if (system(command)) return 2;
    }
    if (!strcmp(what, \"moved\")) {
        snprintf(command, sizeof command, \"%s.away\", folder);
        if (rename(folder, command)) return 2;
    }
    if (!strcmp(what, \"children\")) {
        lower(RLIMIT_NOFILE, 3);
        for (int i = 0; i < 3; i++) {
            int status;
            pid_t child = fork();
            if (!child) { work(0); _exit(sum == 20000 ? 7 : 8); }
            if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) return 4;
        }
        puts(\"right\");
        return 0;
    }
    pthread_t first, second;
    pthread_create(&first, 0, work, 0);
    pthread_create(&second, 0, work, 0);
    work(0);
    pthread_join(first, 0);
    pthread_join(second, 0);
    if (sum != 60000) return 3;
    puts(\"right\");
    return 0;
}
";

struct Case {
    what: &'static str,
    argument: &'static str,
    /// The name of the error, and words of the cause and of what can be done.
    said: [&'static str; 3],
}

const CASES: [Case; 5] = [
    Case { what: "files", argument: "", said: ["EMFILE", "as many files open as it may", "ulimit -n"] },
    Case { what: "size", argument: "", said: ["EFBIG", "longer than the program may write", "ulimit -f"] },
    Case { what: "filter", argument: "", said: ["EPERM", "a seccomp filter forbids the call", "a filter has to allow openat"] },
    Case {
        what: "old filter",
        argument: "",
        said: ["ENOSYS", "a seccomp filter forbids the call", "a filter has to allow openat"],
    },
    Case {
        what: "root",
        argument: "jail",
        said: ["ENOENT", "the program changed its root directory", "--output names a folder"],
    },
];

fn place() -> Place {
    let place = Place::new();
    place.compile("program", PROGRAM);
    std::fs::create_dir(place.path("jail")).unwrap();
    place
}

/// Whether the system let the program do it; says so if not.
fn was_possible(what: &str, ended: &Ended) -> bool {
    if ended.code == 77 {
        crate::support::place::skipped(&format!("{what}: this system does not let the program do that"));
    }
    ended.code != 77
}

#[test]
fn what_is_to_blame_is_said_and_the_program_goes_on() {
    let place = place();
    for Case { what, argument, said } in CASES {
        for policy in ["random", "free"] {
            let store = format!("{what}-{policy}");
            let ended = place.rashomon(&["record", "--policy", policy, "--output", &store, "--", "./program", what, argument]);
            if !was_possible(what, &ended) {
                continue;
            }
            let ended = ended.expect(0, &[said[1]]);
            assert_eq!(ended.out, "right\n", "{what}");
            let recording = place.path(&store).join("recording-0");
            let told = place.rashomon(&["trace", "stat", recording.to_str().unwrap()]).expect(0, &[]);
            assert!(said.iter().all(|words| told.out.contains(words)), "{what} {policy}: {told}");
        }
    }
}

/// Its files are the new user's then, and lie in a folder that stays open.
#[test]
fn who_changes_its_root_or_its_user_is_recorded_to_its_end() {
    let place = place();
    for what in ["jail", "user"] {
        for policy in ["random", "free"] {
            let store = format!("{what}-{policy}");
            let ended = place.rashomon(&["record", "--policy", policy, "--output", &store, "--", "./program", what, "jail"]);
            if !was_possible(what, &ended) {
                continue;
            }
            let ended = ended.expect(0, &[]);
            assert_eq!(ended.out, "right\n", "{what}");
            let recording = place.path(&store).join("recording-0");
            let told = place.rashomon(&["trace", "stat", recording.to_str().unwrap()]).expect(0, &[]);
            for words in ["recording stops", "could not be written", "not complete"] {
                assert!(!ended.err.contains(words) && !told.out.contains(words), "{what} {policy}: {ended}\n{told}");
            }
        }
    }
}

#[test]
fn a_check_reports_it_and_predicts_nothing_from_what_is_missing() {
    let place = place();
    for Case { what, argument, said } in CASES {
        let store = format!("{what}-check");
        let arguments =
            ["check", "--recordings", "1", "--json", "report.json", "--output", &store, "--", "./program", what, argument];
        let ended = place.rashomon(&arguments);
        if was_possible(what, &ended) {
            let ended = ended.expect(0, &[]);
            assert_eq!(ended.out, "right\n", "{what}");
            let notes = place.json("report.json")["run"]["notes"].to_string();
            assert!(said.iter().all(|words| notes.contains(words)), "{what}: {notes}\n{ended}");
            assert_eq!(place.json("report.json")["run"]["unexamined"]["recordings"], 1, "{what}: {ended}");
        }
    }
}

#[test]
fn processes_that_cannot_be_recorded_run_unobserved() {
    let place = place();
    let ended = place.rashomon(&["record", "--output", "store", "--", "./program", "children", ""]).expect(0, &[]);
    assert_eq!(ended.out, "right\n");
    let told = place.rashomon(&["trace", "stat", "store/recording-0"]).expect(0, &[]);
    assert!(told.out.contains("a process that it made could not be recorded") && told.out.contains("EMFILE"), "{told}");
}

#[test]
fn a_recording_that_is_taken_away_while_the_program_runs_is_not_blamed_on_the_build() {
    let place = place();
    for what in ["deleted", "moved"] {
        let folder = place.path(what).join("recording-0");
        let arguments = ["record", "--output", what, "--", "./program", what, folder.to_str().unwrap()];
        let ended = place.rashomon(&arguments).expect(125, &["was moved or deleted while the program ran", "--output"]);
        assert_eq!(ended.out, "right\n", "{ended}");
        assert!(!ended.err.contains("without our runtime"), "{ended}");
    }
}

#[test]
fn a_program_that_may_write_no_header_says_why() {
    let place = place();
    // In blocks of 1024 bytes: the header has 4096, what the tool writes before is shorter, as long as its environment is.
    let tool = env!("CARGO_BIN_EXE_rashomon");
    let line = "ulimit -f 3; exec env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$0\" --quiet record --output store -- ./program none";
    let ended = place.run(place.command("bash", &["-c", line, tool]));
    ended.expect(
        125,
        &["cannot create the recording's header file", "longer than the program may write", "could not begin its recording"],
    );
}

#[test]
fn a_full_disk_is_named() {
    if !is_installed("unshare") {
        return;
    }
    let place = place();
    let tool = env!("CARGO_BIN_EXE_rashomon");
    // One piece of a thread's recording fits, not one of each thread.
    let line = "mkdir disk && mount -t tmpfs -o size=600k none disk || exit 77
        \"$0\" --quiet record --output disk/store -- ./program none || exit $?
        \"$0\" trace stat disk/store/recording-0";
    let ended = place.run(place.command("unshare", &["--map-root-user", "--mount", "bash", "-c", line, tool]));
    if was_possible("a small disk of its own", &ended) && !ended.err.contains("unshare failed") {
        let ended = ended.expect(0, &["the disk is full"]);
        assert!(ended.out.starts_with("right\n"), "{ended}");
        assert!(ended.out.contains("ENOSPC") && ended.out.contains("--trace-limit bounds"), "{ended}");
    }
}
