//! A project with twenty tests under CTest, each of which is a check: the gate fails where a test races that is not known.

use crate::support::place::{Ended, Place, is_installed};

const TESTS: usize = 20;
/// Tests that race from the beginning.
const SEEDED: [usize; 5] = [2, 5, 8, 11, 17];
/// One that comes to race.
const NEW: usize = 14;

/// Two threads count in a function of the test's own, under a lock or without.
fn source(racing: &[usize]) -> String {
    let mut text = String::from("#include <pthread.h>\n#include <stdlib.h>\n");
    text.push_str("static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n");
    for number in 0..TESTS {
        let (take, give) = match racing.contains(&number) {
            true => ("", ""),
            false => ("pthread_mutex_lock(&lock); ", " pthread_mutex_unlock(&lock);"),
        };
        text.push_str(&format!("int counter_{number};\n"));
        text.push_str(&format!("void *count_{number}(void *unused) {{ {take}counter_{number}++;{give} return unused; }}\n"));
    }
    let all: Vec<String> = (0..TESTS).map(|number| format!("count_{number}")).collect();
    text.push_str(&format!("void *(*all[])(void *) = {{ {} }};\n", all.join(", ")));
    text.push_str(
        "int main(int count, char **arguments) {
    int number = count > 1 ? atoi(arguments[1]) : 0;
    pthread_t one, other;
    pthread_create(&one, 0, all[number], 0);
    pthread_create(&other, 0, all[number], 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
",
    );
    text
}

const PROJECT: &str = "cmake_minimum_required(VERSION 3.16)
project(suite C)
enable_testing()
find_package(Rashomon REQUIRED)
rashomon_check_tests(--quiet)
add_executable(suite suite.c)
target_link_libraries(suite pthread)
foreach(number RANGE 0 19)
  add_test(NAME case-${number} COMMAND suite ${number})
endforeach()
add_test(NAME plain COMMAND ${CMAKE_COMMAND} -E true)
";

struct Project(Place);

impl Project {
    fn new() -> Self {
        let place = Place::new();
        place.write("CMakeLists.txt", PROJECT);
        // One recording shows it: a quick check is enough.
        place.write("rashomon.toml", "budget = 40\nrecordings = 1\n[check]\nengines = [\"force\"]\n");
        Self(place)
    }

    fn build(&self, racing: &[usize]) {
        self.0.write("suite.c", source(racing));
        let options = [
            format!("-DCMAKE_C_COMPILER={}", env!("CARGO_BIN_EXE_rashomon-cc")),
            format!("-DRASHOMON_EXECUTABLE={}", env!("CARGO_BIN_EXE_rashomon")),
            format!("-DRashomon_DIR={}/cmake", env!("CARGO_MANIFEST_DIR")),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.0.must("cmake", &[&["-S", ".", "-B", "build", "-DCMAKE_C_FLAGS=-g -O1"], &options[..]].concat());
        self.0.must("cmake", &["--build", "build"]);
        // Only what the next tests find is looked at.
        let _ = std::fs::remove_dir_all(self.0.path("build/.rashomon"));
    }

    /// The tests that failed.
    fn test(&self) -> (Ended, Vec<usize>) {
        let ended = self.0.run(self.0.command("ctest", &["--test-dir", "build", "--parallel", "2"]));
        let failed = |line: &str| {
            let (_, rest) = line.split_once(" - case-")?;
            rest.split(' ').next()?.parse().ok().filter(|_| line.contains("(Failed)"))
        };
        let mut numbers: Vec<usize> = ended.out.lines().filter_map(failed).collect();
        numbers.sort_unstable();
        (ended, numbers)
    }

    fn accept_all(&self) {
        for entry in std::fs::read_dir(self.0.path("build/.rashomon")).unwrap() {
            let store = entry.unwrap().path();
            if !store.is_symlink() {
                let store = store.display().to_string();
                self.0.rashomon(&["accept", "--store", &store, "--baseline", "known.txt", "--all"]).expect(0, &[]);
            }
        }
        self.0.write("rashomon.toml", "budget = 40\nrecordings = 1\nbaseline = \"known.txt\"\n[check]\nengines = [\"force\"]\n");
    }
}

#[test]
fn the_gate_is_red_for_what_is_new_alone() {
    if !is_installed("cmake") || !is_installed("ctest") {
        return;
    }
    let project = Project::new();
    project.build(&SEEDED);
    let (ended, failed) = project.test();
    assert_eq!(failed, SEEDED, "{ended}");
    project.accept_all();
    let (ended, failed) = project.test();
    assert_eq!((ended.code, failed.len()), (0, 0), "{ended}");
    // A new one, by lines that all others move with.
    project.build(&[&SEEDED[..], &[NEW]].concat());
    let (ended, failed) = project.test();
    assert_eq!(failed, [NEW], "{ended}");
    // Its fix.
    project.build(&SEEDED);
    let (ended, failed) = project.test();
    assert_eq!((ended.code, failed.len()), (0, 0), "{ended}");
}
