//! A project under Meson: its tests are checks by a wrapper.

use crate::support::place::{Place, is_installed};

const PROJECT: &str = "project('suite', 'c', default_options: ['buildtype=debugoptimized'])
suite = executable('suite', 'suite.c', dependencies: dependency('threads'))
test('racing', suite, args: ['racing'])
test('locked', suite)
";

const SOURCE: &str = "#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int racing, counter;
static void *count(void *unused) {
    if (!racing) pthread_mutex_lock(&lock);
    counter++;
    if (!racing) pthread_mutex_unlock(&lock);
    return unused;
}
int main(int arguments, char **unused) {
    pthread_t one, other;
    racing = arguments > 1;
    pthread_create(&one, 0, count, 0);
    pthread_create(&other, 0, count, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
";

#[test]
fn tests_are_checks_by_a_wrapper() {
    if !is_installed("meson") {
        return;
    }
    let place = Place::new();
    place.write("meson.build", PROJECT);
    place.write("suite.c", SOURCE);
    let mut setup = place.command("meson", &["setup", "build"]);
    setup.env("CC", env!("CARGO_BIN_EXE_rashomon-cc"));
    place.run(setup).expect(0, &[]);
    let wrapper = format!("'{}' check --quiet --recordings 1 --engines force --", env!("CARGO_BIN_EXE_rashomon"));
    let ended = place.run(place.command("meson", &["test", "-C", "build", "--wrapper", &wrapper]));
    let line = |name: &str, how: &str| ended.out.lines().any(|line| line.contains(name) && line.contains(how));
    assert!(ended.code != 0 && line("racing", "exit status 66") && line("locked", "OK"), "{ended}");
}
