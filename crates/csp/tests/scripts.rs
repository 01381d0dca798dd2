//! Scripts with known verdicts, and what is said about wrong ones.

use rashomon_csp::refine::{Limits, Verdict};
use rashomon_csp::script::Script;

fn verdicts(script: &mut Script) -> Vec<Option<String>> {
    let mut all = Vec::new();
    for assertion in script.assertions.clone() {
        all.push(match script.check(assertion.claim, &Limits::default()) {
            Verdict::Holds { .. } => None,
            Verdict::Fails { counterexamples, .. } => Some(script.counterexample(&counterexamples[0])),
            Verdict::Undecided { why, .. } => panic!("{why}"),
        });
    }
    all
}

/// Verdicts, the same after the script was written and read again.
fn checked(text: &str) -> Vec<Option<String>> {
    let mut script = Script::read(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(script.processes.unfold_all(100_000).unwrap_or_else(|error| panic!("{error}")));
    let mut again = Script::read(&script.written()).unwrap_or_else(|error| panic!("{error}\n{}", script.written()));
    let verdicts = verdicts(&mut script);
    assert_eq!(verdicts, self::verdicts(&mut again));
    verdicts
}

/// Two philosophers who both take the fork that is named first.
fn philosophers(second: &str) -> String {
    format!(
        "channel a1, a2, b1, b2, ra1, ra2, rb1, rb2 -- taking and returning forks a and b
         A = a1 -> ra1 -> A [] a2 -> ra2 -> A
         B = b1 -> rb1 -> B [] b2 -> rb2 -> B
         ONE = a1 -> b1 -> ra1 -> rb1 -> ONE
         TWO = {second} -> ra2 -> rb2 -> TWO
         TABLE = (ONE ||| TWO) [| {{|a1, a2, b1, b2, ra1, ra2, rb1, rb2|}} |] (A ||| B)
         assert TABLE :[deadlock free [F]]"
    )
}

#[test]
fn philosophers_starve_unless_they_agree_on_an_order() {
    let [Some(found)] = &checked(&philosophers("b2 -> a2"))[..] else { panic!() };
    assert!(["a1, b2; then it offers nothing", "b2, a1; then it offers nothing"].contains(&found.as_str()), "{found}");
    assert_eq!(checked(&philosophers("a2 -> b2")), [None]);
}

#[test]
fn the_two_models_differ_where_the_literature_says() {
    let verdicts = checked(
        "channel a, b {- both {visible} -}
         INTERNAL = a -> STOP |~| b -> STOP
         EXTERNAL = a -> STOP [] b -> STOP
         assert INTERNAL [T= EXTERNAL
         assert EXTERNAL [T= INTERNAL
         assert INTERNAL [F= EXTERNAL
         assert EXTERNAL [F= INTERNAL
         assert a -> STOP [T= STOP
         assert a -> STOP [F= STOP",
    );
    assert_eq!(verdicts.iter().map(Option::is_none).collect::<Vec<_>>(), [true, true, true, false, true, false]);
}

#[test]
fn operators_bind_as_in_the_language() {
    let verdicts = checked(
        "channel a, b, c
         P = a -> SKIP ; b -> STOP [] c -> STOP
         assert (((a -> SKIP) ; (b -> STOP)) [] (c -> STOP)) [F= P
         assert P [F= ((a -> SKIP) ; (b -> STOP)) [] (c -> STOP)
         Q = (a -> STOP ||| b -> STOP) \\ {b}
         assert a -> STOP [T= Q
         Q2 = a -> b -> STOP /\\ c -> STOP
         assert a -> STOP [T= Q2 \\ {b}",
    );
    assert_eq!(verdicts, [None, None, None, Some(String::from("c"))]);
}

#[test]
fn a_buffer_of_two_is_two_buffers_of_one() {
    let verdicts = checked(
        "channel in, mid, out
         LEFT = in -> mid -> LEFT
         RIGHT = mid -> out -> RIGHT
         PIPE = (LEFT [| {mid} |] RIGHT) \\ {mid}
         ZERO = in -> SOME
         SOME = in -> out -> SOME [] out -> ZERO
         COPY = in -> out -> COPY
         assert ZERO [F= PIPE
         assert PIPE [F= ZERO
         assert COPY [T= PIPE",
    );
    assert_eq!(verdicts, [None, None, Some(String::from("in, in"))]);
}

#[test]
fn wrong_scripts_are_answered_with_a_place() {
    let declaration = "line 1, column 11: expected `channel`, `datatype`, `subtype`, `nametype`, `include`, `transparent`, \
                       `assert` or a definition `NAME = process`, found `.`";
    let unclosed = "expected `-}` behind this `{-`, found the end of the script";
    let asked = "`[T=`, `[F=`, `[FD=`, `:[deadlock free]`, `:[divergence free]` or `:[deterministic]`";
    let cases: &[(&str, &str)] = &[
        ("channel a\nP = a -> ", "line 2, column 10: expected a process, found the end of the script"),
        ("P = b -> STOP", "line 1, column 5: expected a declared event, found `b`"),
        ("P = Q", "line 1, column 5: expected a declared event or a defined name, found `Q`"),
        ("channel a, a", "line 1, column 12: expected an event that is not declared yet, found `a`"),
        ("P = STOP\nP = SKIP", "line 2, column 1: expected a name that is not defined yet, found `P`"),
        ("channel c . {0}", declaration),
        ("P = STOP\nassert P [R= P", &format!("line 2, column 10: expected {asked}, found `[R=`")),
        ("P = STOP\nassert P [X=", &format!("line 2, column 10: expected {asked}, found `[X=`")),
        ("channel a\n{- to {- its -} end\nP = a", &format!("line 2, column 1: {unclosed}")),
        ("channel a\nP = a -> {- more", &format!("line 2, column 10: {unclosed}")),
        ("P = 'x'", "line 1, column 5: expected a process, found `'`"),
        ("P = STOP\nQ = P ; 99999999999999999999", "line 2, column 9: expected a process, found `99999999999999999999`"),
        ("P = (STOP", "line 1, column 10: expected `)`, found the end of the script"),
    ];
    for &(text, expected) in cases {
        assert_eq!(Script::read(text).map(|_| ()).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn deep_scripts_are_refused() {
    let parentheses = format!("P = {}STOP", "(".repeat(100_000));
    let chain = format!("P = STOP{}", " ; STOP".repeat(100_000));
    for text in [parentheses, chain] {
        assert!(Script::read(&text).is_err_and(|error| error.expected.contains("within each other")));
    }
}
