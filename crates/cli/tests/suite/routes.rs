//! However a program comes by the runtime, the same race in it is proven.

use crate::support::place::{Place, RACE, is_installed};
use crate::support::summarise;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What is proven of `RACE`.
const EXPECTED: &str = "race 3 7 co-enabled";

/// The only proven finding, as [`summarise`] tells it, and its id.
#[track_caller]
fn proven(place: &Place, command: &[&str], source: &str) -> (String, String) {
    proven_by(place, place.tool(&[&["check", "--json", "report.json", "--"], command].concat()), source)
}

#[track_caller]
fn proven_by(place: &Place, command: Command, source: &str) -> (String, String) {
    let ended = place.run(command).expect(66, &["1 proven, 0 predicted"]);
    let report = place.json("report.json");
    let proven: Vec<&Value> =
        report["findings"].as_array().into_iter().flatten().filter(|finding| finding["verdict"] == "proven").collect();
    let [finding] = proven.as_slice() else { panic!("one proven finding was expected; {ended}") };
    (summarise(finding, Path::new(source)), finding["id"].as_str().unwrap_or_default().to_owned())
}

/// The finding of the shortest route.
fn reference() -> (String, String) {
    let place = Place::new();
    place.compile("race", RACE);
    let found = proven(&place, &["./race"], "race.c");
    assert_eq!(found.0, EXPECTED);
    found
}

fn with_race() -> Place {
    let place = Place::new();
    place.write("race.c", RACE);
    place
}

#[test]
fn a_source_file() {
    let place = with_race();
    let found = proven_by(&place, place.tool(&["check", "--json", "report.json", "race.c"]), "race.c");
    assert_eq!(found, reference());
}

#[test]
fn compiling_and_linking_apart() {
    let place = with_race();
    place.rashomon(&["cc", "-O1", "-c", "race.c"]).expect(0, &[]);
    place.rashomon(&["cc", "race.o", "-o", "race", "-pthread"]).expect(0, &[]);
    assert_eq!(proven(&place, &["./race"], "race.c"), reference());
}

#[test]
fn a_binary_that_gcc_made() {
    let place = with_race();
    if is_installed("gcc") {
        place.must("gcc", &["-fsanitize=thread", "-g", "-O1", "-pthread", "race.c", "-o", "race"]);
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

#[test]
fn clang() {
    let place = with_race();
    if is_installed("clang-19") {
        let mut compiler = place.tool(&["cc", "-O1", "-pthread", "race.c", "-o", "race"]);
        compiler.env("RASHOMON_CC", "clang-19");
        place.run(compiler).expect(0, &[]);
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

#[test]
fn clang_compiling_and_linking_apart() {
    let place = with_race();
    if is_installed("clang-19") {
        for line in [&["cc", "-O1", "-c", "race.c"] as &[&str], &["cc", "race.o", "-o", "race", "-pthread"]] {
            let mut compiler = place.tool(line);
            compiler.env("RASHOMON_CC", "clang-19");
            place.run(compiler).expect(0, &[]);
        }
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

/// The folder that `-L` takes.
fn runtime_path(place: &Place) -> String {
    place.rashomon(&["runtime-path"]).expect(0, &[]).out.trim_end().to_owned()
}

#[test]
fn the_shared_runtime_by_its_folder() {
    let place = with_race();
    if is_installed("gcc") {
        let search = format!("-L{}", runtime_path(&place));
        place.must("gcc", &["-fsanitize=thread", "-g", "-O1", "-pthread", "race.c", "-o", "race", &search]);
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

#[test]
fn the_shared_runtime_by_clang() {
    let place = with_race();
    if is_installed("clang-19") {
        let folder = runtime_path(&place);
        let (search, found_at) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
        place.must("clang-19", &["-fsanitize=thread", "-g", "-O1", "-c", "race.c"]);
        place.must("clang-19", &["race.o", "-o", "race", "-pthread", &search, &found_at, "-lrashomon_runtime"]);
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

/// What `make` and `configure` are given as the compiler.
fn wrapper(language: &str) -> String {
    format!("{} {language}", env!("CARGO_BIN_EXE_rashomon"))
}

#[test]
fn make() {
    let place = with_race();
    place.write("Makefile", "CFLAGS = -O1\nrace: race.o other.o\n\t$(CC) -pthread -o $@ $^\n");
    place.write("other.c", "int other(void) { return 1; }\n");
    if is_installed("make") {
        place.must("make", &["-s", &format!("CC={}", wrapper("cc"))]);
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

#[test]
fn the_environment_for_make() {
    let place = with_race();
    place.write("Makefile", "race: race.c\n\t$(CC) -O1 -pthread -o $@ $^\n");
    if is_installed("make") {
        place.write("env.sh", place.rashomon(&["env"]).expect(0, &[]).out);
        place.must("sh", &["-c", ". ./env.sh && make -s -e"]);
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

#[test]
fn cmake_with_a_shared_library() {
    let place = Place::new();
    if !is_installed("cmake") {
        return;
    }
    for name in ["cc", "c++"] {
        let link = place.path(&format!("rashomon-{name}"));
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rashomon"), link).expect("the folder is writable");
    }
    place.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.16)
project(race C CXX)
find_package(Threads REQUIRED)
add_library(increments SHARED increments.c)
add_executable(race main.cpp)
target_link_libraries(race increments Threads::Threads)
",
    );
    place.write("increments.c", INCREMENTS);
    place.write("main.cpp", MAIN_OF_LIBRARY.replace("void *increment", "extern \"C\" void *increment"));
    let (cc, cxx) = (place.path("rashomon-cc"), place.path("rashomon-c++"));
    place.must(
        "cmake",
        &[
            "-S.",
            "-Bbuild",
            "-GUnix Makefiles",
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            &format!("-DCMAKE_C_COMPILER={}", cc.display()),
            &format!("-DCMAKE_CXX_COMPILER={}", cxx.display()),
        ],
    );
    place.must("cmake", &["--build", "build"]);
    assert_eq!(proven(&place, &["build/race"], "increments.c").0, "race 3 3 co-enabled");
}

/// What configure scripts do: programs that must link, must not link, and are run.
const CONFIGURE: &str = "#!/bin/sh
try() { echo \"$1\" > conftest.c; $CC $CFLAGS -o conftest conftest.c $2 > conftest.log 2>&1; }
try 'int main(void) { return 0; }' || { echo 'configure: C compiler cannot create executables' >&2; exit 77; }
./conftest || { echo 'configure: cannot run C compiled programs' >&2; exit 77; }
try '#include <stdio.h>
int main(void) { FILE *f = fopen(\"conftest.val\", \"w\"); return !f || fprintf(f, \"%d\", (int)sizeof(long)) < 0 || fclose(f); }'
./conftest && test \"$(cat conftest.val)\" = 8 || { echo 'configure: wrong size of long' >&2; exit 1; }
try 'char no_such_function(); int main(void) { return no_such_function(); }' && { echo 'configure: links everything' >&2; \
    exit 1; }
try 'char pthread_create(); int main(void) { return pthread_create(); }' -lpthread || { echo 'configure: no pthread_create' \
    >&2; exit 1; }
$CC -E conftest.c > conftest.i || exit 1
$CC --version > conftest.version || exit 1
rm -f conftest*
printf 'race: race.c\\n\\t%s %s -o race race.c -lpthread\\n' \"$CC\" \"$CFLAGS\" > Makefile
";

#[test]
fn configure() {
    let place = with_race();
    place.write("configure", CONFIGURE);
    if is_installed("make") {
        let mut configure = place.command("sh", &["./configure"]);
        configure.env("CC", wrapper("cc")).env("CFLAGS", "-O1");
        place.run(configure).expect(0, &[]);
        place.must("make", &["-s"]);
        assert_eq!(proven(&place, &["./race"], "race.c"), reference());
    }
}

/// A library whose code races with itself.
const INCREMENTS: &str = "static int x;
void *increment(void *unused) {
    x++;
    return 0;
}
";

const MAIN_OF_LIBRARY: &str = "#include <pthread.h>
void *increment(void *);
int main() {
    pthread_t thread;
    pthread_create(&thread, 0, increment, 0);
    increment(0);
    pthread_join(thread, 0);
    return 0;
}
";

fn with_library(compiler: Option<&str>) -> Place {
    let place = Place::new();
    place.write("increments.c", INCREMENTS);
    place.write("main.c", MAIN_OF_LIBRARY);
    for line in [
        &["cc", "-O1", "-shared", "-fPIC", "-Wl,-z,defs", "increments.c", "-o", "libincrements.so"] as &[&str],
        &["cc", "-O1", "main.c", "-o", "program", "-pthread", "-L.", "-lincrements", "-Wl,-rpath,$ORIGIN"],
    ] {
        let mut command = place.tool(line);
        if let Some(compiler) = compiler {
            command.env("RASHOMON_CC", compiler);
        }
        place.run(command).expect(0, &[]);
    }
    place
}

#[test]
fn a_shared_library() {
    let place = with_library(None);
    assert_eq!(proven(&place, &["./program"], "increments.c").0, "race 3 3 co-enabled");
}

#[test]
fn a_shared_library_by_clang() {
    if is_installed("clang-19") {
        let place = with_library(Some("clang-19"));
        assert_eq!(proven(&place, &["./program"], "increments.c").0, "race 3 3 co-enabled");
    }
}

#[test]
fn a_plugin() {
    let place = Place::new();
    place.write("plugin.c", INCREMENTS);
    place.rashomon(&["cc", "-O1", "-shared", "-fPIC", "plugin.c", "-o", "plugin.so"]).expect(0, &[]);
    place.compile(
        "program",
        "#include <dlfcn.h>
#include <pthread.h>
int main(void) {
    void *plugin = dlopen(\"./plugin.so\", RTLD_NOW);
    if (!plugin) return 3;
    void *(*increment)(void *) = (void *(*)(void *))dlsym(plugin, \"increment\");
    pthread_t thread;
    pthread_create(&thread, 0, increment, 0);
    increment(0);
    pthread_join(thread, 0);
    return dlclose(plugin);
}
",
    );
    assert_eq!(proven(&place, &["./program"], "plugin.c").0, "race 3 3 co-enabled");
    // The plugin is loaded elsewhere each time, and the schedule is good all the same.
    let id = crate::support::place::statuses(&place.json("report.json")).remove(0).0;
    place.rashomon(&["replay", &id, "--times", "3"]).expect(0, &[]);
}

const EXCEPTIONS: &str = "#include <stdexcept>
#include <thread>
static int caught;
static void work(int number) {
    try {
        if (number >= 0) throw std::runtime_error(\"always\");
    } catch (const std::exception &) {
        caught++;
    }
}
int main() {
    std::thread one(work, 1);
    work(2);
    one.join();
    return 0;
}
";

#[test]
fn cxx_with_exceptions() {
    let place = Place::new();
    place.compile_cxx("program", EXCEPTIONS);
    assert_eq!(proven(&place, &["./program"], "program.cpp").0, "race 8 8 co-enabled");
}

#[test]
fn cxx_with_exceptions_that_gcc_made() {
    let place = Place::new();
    place.write("program.cpp", EXCEPTIONS);
    if is_installed("g++") {
        place.must("g++", &["-fsanitize=thread", "-g", "-O1", "-pthread", "program.cpp", "-o", "program"]);
        assert_eq!(proven(&place, &["./program"], "program.cpp").0, "race 8 8 co-enabled");
    }
}

#[test]
fn a_script_that_starts_the_program() {
    let place = Place::new();
    place.compile("race", RACE);
    let script = place.write("start.sh", "#!/bin/sh\nexec ./race\n");
    place.must("chmod", &["+x", &script.display().to_string()]);
    assert_eq!(proven(&place, &["./start.sh"], "race.c"), reference());
}
