//! Small programs, compiled here, and what the symbolizer says about them.

use object::{Object, ObjectSymbol};
use rashomon_event::ModuleInfo;
use rashomon_symbolize::{Local, StackFrame, SymbolizeError, Symbolizer, build_id};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "\
#include <stddef.h>
int shared_counter;
static long table[4] = {1, 2, 3, 4};
static inline __attribute__((always_inline)) int inner(int *p) {
    return __atomic_fetch_add(p, 1, 0);
}
__attribute__((noinline)) int outer(int *p) {
    static short calls = 7;
    calls++;
    return inner(p);
}
int main(void) { return outer(&shared_counter) + (int)table[0]; }
";

const CPP_SOURCE: &str = "\
namespace queue {
struct Node { static int live; int value; int grow(int by); };
int Node::live = 3;
__attribute__((noinline)) int Node::grow(int by) { live += by; return value + live; }
}
int main() { queue::Node node{1}; return node.grow(2); }
";

/// Compiles a program; `None`, with a note, where there is no compiler.
fn compile(directory: &Path, compiler: &str, source: &str, flags: &[&str]) -> Option<ModuleInfo> {
    let extension = if compiler == "gcc" { "c" } else { "cpp" };
    let input = directory.join(format!("program.{extension}"));
    std::fs::write(&input, source).expect("the source is written");
    let output = directory.join("program");
    let mut command = Command::new(compiler);
    command.args(flags).arg("-o").arg(&output).arg(&input);
    match command.output() {
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {
            assert!(
                std::env::var_os("RASHOMON_TESTS_MUST_NOT_SKIP").is_none(),
                "{compiler} is not installed, and tests must not be skipped"
            );
            eprintln!("SKIPPED: {compiler} is not installed");
            None
        }
        Err(other) => panic!("{compiler}: {other}"),
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(module(&output))
        }
    }
}

fn module(path: &Path) -> ModuleInfo {
    let build_id = build_id(path).expect("the program is an object file");
    ModuleInfo {
        path: path.to_str().expect("a plain path").to_owned(),
        build_id,
        base: 0x5555_0000,
        start: 0x5555_0000,
        end: 0x5556_0000,
    }
}

/// Address and size of a symbol, read independently of the crate under test.
fn symbol(info: &ModuleInfo, name: &str) -> (u64, u64) {
    let bytes = std::fs::read(&info.path).expect("the program is there");
    let file = object::File::parse(&*bytes).expect("an object file");
    let found = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap_or_else(|| panic!("no symbol {name}"));
    (found.address(), found.size())
}

fn workspace() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn base_name(path: &Option<String>) -> &str {
    Path::new(path.as_deref().expect("a file")).file_name().and_then(|name| name.to_str()).expect("a name")
}

#[test]
fn inlined_frames_come_innermost_first() {
    for flags in [["-g", "-O1", "-pie", "-fPIE"], ["-g", "-O1", "-no-pie", "-fno-pie"], ["-gdwarf-4", "-O2", "-pie", "-fPIE"]] {
        let directory = workspace();
        let Some(info) = compile(directory.path(), "gcc", SOURCE, &flags) else {
            return;
        };
        let symbolizer = Symbolizer::new();
        assert!(symbolizer.has_debug_info(&info));
        let (start, size) = symbol(&info, "outer");
        let stacks: Vec<_> = (start..start + size).map(|offset| (offset, symbolizer.frames(&info, offset))).collect();
        assert!(stacks.iter().all(|(_, frames)| {
            frames.last().is_some_and(|frame| frame.function.as_deref() == Some("outer") && !frame.inlined)
        }));
        let (offset, inlined) = stacks.iter().find(|(_, frames)| frames.len() == 2).expect("an inlined call");
        assert_eq!(inlined[0].function.as_deref(), Some("inner"));
        assert_eq!((base_name(&inlined[0].file), inlined[0].line, inlined[0].inlined), ("program.c", Some(5), true));
        assert_eq!((inlined[1].line, inlined[1].inlined), (Some(10), false));
        assert_eq!((inlined[0].offset, inlined[1].offset), (*offset, *offset));
        assert_eq!(symbolizer.frames_of_return_address(&info, offset + 1), *inlined);
    }
}

#[test]
fn variables_are_found_by_their_bytes() {
    let directory = workspace();
    let Some(info) = compile(directory.path(), "gcc", SOURCE, &["-g", "-O0"]) else {
        return;
    };
    let symbolizer = Symbolizer::new();
    let (address, _) = symbol(&info, "shared_counter");
    let found = symbolizer.data_symbol(&info, address + 3).expect("a variable");
    assert_eq!((found.name.as_str(), found.offset, found.size), ("shared_counter", address, 4));
    let variable = symbolizer.variable(&info, address).expect("a declaration");
    assert_eq!((variable.name.as_str(), base_name(&variable.file), variable.line), ("shared_counter", "program.c", Some(2)));

    let (table, _) = symbol(&info, "table");
    let found = symbolizer.data_symbol(&info, table + 9).expect("a static variable");
    assert_eq!((found.name.as_str(), found.offset, found.size), ("table", table, 32));
    assert_ne!(symbolizer.data_symbol(&info, table + 32).map(|symbol| symbol.name), Some("table".to_owned()));

    let (calls, _) = symbol(&info, "calls.0");
    assert_eq!(symbolizer.data_symbol(&info, calls).map(|symbol| symbol.name), Some("calls".to_owned()));
    let variable = symbolizer.variable(&info, calls + 1).expect("a declaration");
    assert_eq!((variable.name.as_str(), variable.line), ("calls", Some(8)));
    assert_eq!(symbolizer.data_symbol(&info, u64::MAX), None);
}

#[test]
fn cpp_names_are_demangled() {
    let directory = workspace();
    let Some(info) = compile(directory.path(), "g++", CPP_SOURCE, &["-g", "-O1"]) else {
        return;
    };
    let symbolizer = Symbolizer::new();
    let (grow, _) = symbol(&info, "_ZN5queue4Node4growEi");
    assert_eq!(symbolizer.frames(&info, grow)[0].function.as_deref(), Some("queue::Node::grow(int)"));
    let (live, _) = symbol(&info, "_ZN5queue4Node4liveE");
    assert_eq!(symbolizer.data_symbol(&info, live).map(|symbol| symbol.name), Some("queue::Node::live".to_owned()));
    let variable = symbolizer.variable(&info, live).expect("a declaration");
    assert_eq!((variable.name.as_str(), variable.line), ("live", Some(3)));
}

#[test]
fn without_debug_information_the_symbol_table_answers() {
    let directory = workspace();
    let Some(info) = compile(directory.path(), "gcc", SOURCE, &["-O1"]) else {
        return;
    };
    let symbolizer = Symbolizer::new();
    let (outer, _) = symbol(&info, "outer");
    let frames = symbolizer.frames(&info, outer + 1);
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].function.as_deref(), &frames[0].file, frames[0].line), (Some("outer"), &None, None));
    assert!(!symbolizer.has_debug_info(&info));
    let (counter, _) = symbol(&info, "shared_counter");
    assert!(symbolizer.data_symbol(&info, counter).is_some() && symbolizer.variable(&info, counter).is_none());

    let Some(stripped) = compile(directory.path(), "gcc", SOURCE, &["-O1", "-s"]) else {
        return;
    };
    let frames = symbolizer.frames(&stripped, outer + 1);
    assert_eq!((frames.len(), &frames[0].function, frames[0].offset), (1, &None, outer + 1));
}

#[test]
fn another_build_explains_nothing() {
    let directory = workspace();
    let flags = ["-g", "-Wl,--build-id=0x1234abcd"];
    let Some(mut info) = compile(directory.path(), "gcc", SOURCE, &flags) else {
        return;
    };
    assert_eq!(info.build_id.as_deref(), Some("1234abcd"));
    let symbolizer = Symbolizer::new();
    assert_eq!(symbolizer.check(&info), Ok(()));
    let (outer, _) = symbol(&info, "outer");
    info.build_id = Some("ffff".to_owned());
    let path = PathBuf::from(&info.path);
    let mismatch = SymbolizeError::BuildIdMismatch { path, recorded: "ffff".to_owned(), found: "1234abcd".to_owned() };
    assert_eq!(symbolizer.check(&info), Err(mismatch));
    let frames = symbolizer.frames(&info, outer);
    assert_eq!((frames.len(), &frames[0].function), (1, &None));
}

#[test]
fn files_that_are_no_objects_are_told() {
    let directory = workspace();
    let text = directory.path().join("text");
    std::fs::write(&text, "hello").expect("written");
    let info =
        |path: &Path| ModuleInfo { path: path.to_str().expect("plain").to_owned(), build_id: None, base: 0, start: 0, end: 1 };
    let symbolizer = Symbolizer::new();
    assert!(matches!(symbolizer.check(&info(&text)), Err(SymbolizeError::NotAnObject { .. })));
    assert!(matches!(symbolizer.check(&info(&directory.path().join("none"))), Err(SymbolizeError::Unreadable { .. })));
    assert!(matches!(symbolizer.check(&info(directory.path())), Err(SymbolizeError::Unreadable { .. })));
    assert_eq!(symbolizer.frames(&info(Path::new("[vdso]")), 5)[0].offset, 5);
}

const MEMBERS: &str = "\
#include <memory>
#include <mutex>
namespace bank {
struct Entry { int key; long value; };
struct Base { long kind; };
struct Stats : Base { int count; Entry entries[3]; std::mutex lock; __attribute__((noinline)) void add(); };
Stats totals;
Entry grid[2][3];
void Stats::add() { lock.lock(); count++; lock.unlock(); }
struct Guard { long before; pthread_mutex_t inner; __attribute__((noinline)) void take(); };
void Guard::take() { pthread_mutex_lock(&inner); }
struct Owner { long kind; Guard *guard; __attribute__((noinline)) void look(); };
void Owner::look() { guard->take(); }
}
template <typename F> __attribute__((noinline)) void call(F f) { f(); }
int main() {
    auto stats = std::make_shared<bank::Stats>();
    call([stats] { stats->add(); });
    bank::totals.add();
    bank::Guard guard = {1, PTHREAD_MUTEX_INITIALIZER};
    bank::Owner{1, &guard}.look();
    return bank::grid[0][0].key;
}
";

#[test]
fn members_have_names() {
    let folder = tempfile::tempdir().expect("a folder");
    for flags in [["-g", "-O0", "-std=c++17"], ["-g", "-O1", "-std=c++17"], ["-gdwarf-4", "-O0", "-std=c++17"]] {
        let Some(module) = compile(folder.path(), "g++", MEMBERS, &flags) else { return };
        let symbolizer = Symbolizer::new();
        let totals = symbol(&module, "_ZN4bank6totalsE").0;
        let of_totals = |offset| symbolizer.member_of_variable(&module, totals + offset);
        assert_eq!(of_totals(0).as_deref(), Some(".kind"));
        assert_eq!(of_totals(8).as_deref(), Some(".count"));
        assert_eq!(of_totals(12), None, "padding");
        assert_eq!(of_totals(40).as_deref(), Some(".entries[1].value"));
        assert_eq!(of_totals(64).as_deref(), Some(".lock"));
        assert_eq!(of_totals(72).as_deref(), Some(".lock"), "what a mutex is made of is no matter");
        let grid = symbol(&module, "_ZN4bank4gridE").0;
        assert_eq!(symbolizer.member_of_variable(&module, grid + 72).as_deref(), Some("[1][1].value"));
        let add = symbol(&module, "_ZN4bank5Stats3addEv").0 + 1;
        let names = |size, offset, used| -> Vec<String> {
            let found = symbolizer.members_of_block(&module, add, size, offset, used);
            found.names.into_iter().map(|name| name.name).collect()
        };
        let in_block = |size, offset| names(size, offset, Some(4));
        let lock_in_block = |size, offset| names(size, offset, None);
        assert_eq!(lock_in_block(104, 64), ["bank::Stats::lock"]);
        assert!(lock_in_block(104, 8).is_empty(), "an integer is no lock");
        assert!(names(104, 8, Some(8)).is_empty(), "4 bytes are not used as 8");
        let larger = symbolizer.members_of_block(&module, add, 4096, 64, None);
        assert_eq!((larger.names.len(), larger.parts), (0, vec!["bank::Stats".to_owned()]), "it may be a part of the block");
        assert_eq!(in_block(120, 24), ["bank::Stats::count"], "behind the counters of a shared pointer");
        assert_eq!(in_block(104, 40), ["bank::Stats::entries[1].value"]);
        assert!(in_block(103, 64).is_empty(), "a block of another size is something else");
        assert!(in_block(104, 12).is_empty(), "padding has no name");
        assert!(in_block(104, 42).is_empty(), "nobody uses half of a number");
        let by = |function: &str, offset, used| -> Vec<String> {
            let code = symbol(&module, function).0 + 1;
            let found = symbolizer.members_of_block(&module, code, 48, offset, used);
            found.names.into_iter().map(|name| name.name).collect()
        };
        let (take, look) = ("_ZN4bank5Guard4takeEv", "_ZN4bank5Owner4lookEv");
        assert_eq!(by(take, 8, None), ["bank::Guard::inner"]);
        assert_eq!(by(take, 0, Some(8)), ["bank::Guard::before"]);
        assert!(by(take, 40, Some(1)).is_empty(), "nobody uses what a mutex is made of");
        assert!(by(look, 0, Some(8)).is_empty(), "what a structure points to may be anything of that size");
    }
}

const OPEN: &str = "\
struct entry { int key; long value; };
struct pair { long first, second; int third; };
struct list { int zero[0]; int count; struct entry entries[]; };
__attribute__((noinline)) int sum(struct list *list) { return list->count + list->entries[1].key; }
__attribute__((noinline)) long either(struct list *list, struct pair *pair) { return list->count + pair->first; }
struct { struct list list; struct entry entries[2]; } kept;
struct pair pair;
int main(void) { return sum(&kept.list) + (int)either(&kept.list, &pair); }
";

/// A structure whose last member is an array without an end may be what a block of any larger size is used as.
#[test]
fn blocks_go_on_behind_a_structure_with_an_open_end() {
    let folder = tempfile::tempdir().expect("a folder");
    for flags in [["-g", "-O0"], ["-g", "-O1"], ["-gdwarf-4", "-O0"]] {
        let Some(module) = compile(folder.path(), "gcc", OPEN, &flags) else { return };
        let symbolizer = Symbolizer::new();
        let by = |function: &str, size, offset| -> Vec<String> {
            let code = symbol(&module, function).0 + 1;
            let found = symbolizer.members_of_block(&module, code, size, offset, Some(4));
            found.names.into_iter().map(|name| name.name).collect()
        };
        assert_eq!(by("sum", 40, 0), ["list::count"], "not the array that has no room in front of it");
        assert_eq!(by("sum", 40, 24), ["list::entries[1].key"]);
        assert_eq!(by("sum", 8, 0), ["list::count"], "without an entry");
        assert!(by("sum", 4, 0).is_empty(), "a block that has no room for it");
        assert_eq!(by("either", 40, 0), ["list::count"]);
        assert_eq!(by("either", 24, 0), ["list::count", "pair::first"], "one of them has that size by chance");
    }
}

const LOCALS: &str = "\
struct Stats { int hits; long totals[4]; };
__attribute__((noinline)) void use(struct Stats *stats, long *frame) {
    frame[0] = (long)&stats->totals[2];
}
__attribute__((noinline)) long around(void) {
    struct Stats stats = {0};
    long frame[3];
    use(&stats, frame);
    frame[1] = (long)__builtin_dwarf_cfa();
    frame[2] = (long)__builtin_return_address(0);
    return frame[0] - frame[1];
}
int main(void) { return (int)around() >= 0; }
";

/// The distance between a variable and its frame's address is what the running program says.
#[test]
fn variables_of_functions_have_names() {
    let directory = tempfile::tempdir().expect("a folder");
    let source = LOCALS.replace("return (int)around() >= 0;", "__builtin_printf(\"%ld\", around()); return 0;");
    for flags in [["-g", "-O0"], ["-g", "-O2"]] {
        let Some(info) = compile(directory.path(), "gcc", &source, &flags) else { return };
        let output = Command::new(&info.path).output().expect("it runs");
        let distance: i64 = String::from_utf8_lossy(&output.stdout).parse().expect("a number");
        let (start, size) = symbol(&info, "around");
        let code = start + size / 2;
        let frame = StackFrame { address: 0x7fff_0000_1000, stack_pointer: 0x7fff_0000_0e00 };
        let at = frame.address.checked_add_signed(distance).expect("an address");
        let local = |at: u64| Symbolizer::new().local(&info, code, frame, at);
        let named = |name: &str| Some(Local { name: name.into(), function: "around".into() });
        assert_eq!(local(at), named("stats.totals[2]"), "{flags:?}");
        assert_eq!(local(at - 24), named("stats.hits"), "{flags:?}");
        assert_eq!(local(frame.address + 64), None, "{flags:?}");
    }
}
