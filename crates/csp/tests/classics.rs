//! Scripts of the literature whose verdicts are known, in both models, and every kind of wrong script.

use rashomon_csp::refine::{Limits, Verdict};
use rashomon_csp::script::Script;

/// Whether each assertion holds; the script that is written must say the same.
fn hold(text: &str) -> Vec<bool> {
    let mut script = Script::read(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(script.processes.unfold_all(100_000).unwrap_or_else(|error| panic!("{error}")));
    let again = Script::read(&script.written()).unwrap_or_else(|error| panic!("{error}\n{}", script.written()));
    let [first, second] = [script, again].map(|script| {
        let verdict = |claim| match script.clone().check(claim, &Limits::default()) {
            Verdict::Holds { .. } => true,
            Verdict::Fails { .. } => false,
            Verdict::Undecided { why, .. } => panic!("{why}"),
        };
        script.assertions.iter().map(|assertion| verdict(assertion.claim)).collect::<Vec<_>>()
    });
    assert_eq!(first, second);
    first
}

fn first_counterexample(text: &str) -> String {
    let mut script = Script::read(text).unwrap_or_else(|error| panic!("{error}"));
    let claim = script.assertions[0].claim;
    let Verdict::Fails { counterexamples, .. } = script.check(claim, &Limits::default()) else { panic!("{text}") };
    script.counterexample(&counterexamples[0])
}

/// Hoare's machine that offers a choice, and one that has chosen when the coin is in.
#[test]
fn vending_machines_differ_in_failures_only() {
    let script = "channel coin, choc, toffee
        OFFERS = coin -> (choc -> OFFERS [] toffee -> OFFERS)
        DECIDES = (coin -> choc -> DECIDES) [] (coin -> toffee -> DECIDES)
        CUSTOMER = coin -> choc -> CUSTOMER
        assert OFFERS [T= DECIDES
        assert DECIDES [T= OFFERS
        assert OFFERS [F= DECIDES
        assert DECIDES [F= OFFERS
        assert OFFERS [| {|coin, choc, toffee|} |] CUSTOMER :[deadlock free]
        assert DECIDES [| {|coin, choc, toffee|} |] CUSTOMER :[deadlock free]";
    assert_eq!(hold(script), [true, true, false, true, true, false]);
}

#[test]
fn laws_hold_and_what_are_no_laws_do_not() {
    let laws = "channel a, b, c
        P = a -> b -> SKIP
        Q = b -> STOP |~| c -> SKIP
        R = c -> R
        assert P [F= P [] STOP
        assert P [] STOP [F= P
        assert SKIP ; Q [F= Q
        assert Q [F= SKIP ; Q
        assert STOP ; P [F= STOP
        assert Q [F= Q [] Q
        assert P ||| Q [F= Q ||| P
        assert (P ; Q) ; R [F= P ; (Q ; R)
        assert P ; (Q ; R) [F= (P ; Q) ; R
        assert a -> b -> STOP [] b -> a -> STOP [F= a -> STOP ||| b -> STOP
        assert a -> STOP ||| b -> STOP [F= a -> b -> STOP [] b -> a -> STOP
        assert SKIP [F= SKIP ||| SKIP
        assert (P |~| Q) \\ {b} [F= (P \\ {b}) |~| (Q \\ {b})
        assert (P \\ {b}) |~| (Q \\ {b}) [F= (P |~| Q) \\ {b}";
    assert!(hold(laws).iter().all(|&holds| holds), "{:?}", hold(laws));
    let none = "channel a, b, c
        assert a -> c -> STOP [] b -> STOP [T= (a -> c -> STOP [] b -> STOP) \\ {a}
        assert c -> STOP [] b -> STOP [F= (a -> c -> STOP [] b -> STOP) \\ {a}
        assert b -> STOP [T= a -> STOP /\\ b -> STOP
        assert a -> STOP [F= a -> STOP |~| STOP
        assert SKIP [T= a -> SKIP
        assert a -> SKIP [F= a -> STOP";
    assert_eq!(hold(none), [false; 6]);
}

/// Two processes with flags and a turn. `ask`: what each does before it waits; `wait`: when it may go on.
fn mutual_exclusion(turns: bool) -> String {
    let process = |own: u32, other: u32| {
        let turn = if turns { format!("turn{other} -> ") } else { String::new() };
        let after_turn = if turns { format!(" [] is_turn{own}_{own} -> enter{own} -> LEAVE{own}") } else { String::new() };
        format!(
            "P{own} = up{own} -> {turn}WAIT{own}
             WAIT{own} = is_down{other} -> enter{own} -> LEAVE{own}{after_turn}
             LEAVE{own} = exit{own} -> down{own} -> P{own}\n"
        )
    };
    let flag = |own: u32| {
        format!(
            "DOWN{own} = up{own} -> UP{own} [] is_down{own} -> DOWN{own}\nUP{own} = down{own} -> \
                DOWN{own} [] up{own} -> UP{own}\n"
        )
    };
    let turn = "TURN1 = turn1 -> TURN1 [] turn2 -> TURN2 [] is_turn1_1 -> TURN1
         TURN2 = turn1 -> TURN1 [] turn2 -> TURN2 [] is_turn2_2 -> TURN2\n";
    format!(
        "channel up1, up2, down1, down2, is_down1, is_down2, turn1, turn2, is_turn1_1, is_turn2_2
         channel enter1, exit1, enter2, exit2
         {}{}{}{}{turn}
         MEMORY = (DOWN1 ||| DOWN2) ||| TURN1
         SYSTEM = (P1 ||| P2) [| {{up1, up2, down1, down2, is_down1, is_down2, turn1, turn2, is_turn1_1, is_turn2_2}} |] MEMORY
         ONE_AT_A_TIME = enter1 -> exit1 -> ONE_AT_A_TIME [] enter2 -> exit2 -> ONE_AT_A_TIME
         INSIDE = SYSTEM \\ {{up1, up2, down1, down2, is_down1, is_down2, turn1, turn2, is_turn1_1, is_turn2_2}}
         assert SYSTEM :[deadlock free]
         assert ONE_AT_A_TIME [T= INSIDE
         assert INSIDE [T= ONE_AT_A_TIME",
        process(1, 2),
        process(2, 1),
        flag(1),
        flag(2),
    )
}

/// Flags alone exclude, but two that ask at once wait for ever; Peterson's turn mends that.
#[test]
fn peterson_excludes_and_does_not_stop() {
    assert_eq!(hold(&mutual_exclusion(true)), [true, true, true]);
    assert_eq!(hold(&mutual_exclusion(false)), [false, true, true]);
    let found = first_counterexample(&mutual_exclusion(false));
    assert!(["up1, up2; then it offers nothing", "up2, up1; then it offers nothing"].contains(&found.as_str()), "{found}");
}

/// The alternating bit protocol over channels that lose messages is a buffer of one place; without the bit it delivers twice.
#[test]
fn the_alternating_bit_protocol_is_a_buffer() {
    let protocol = "channel in, out, s0, s1, r0, r1, a0, a1, b0, b1, lost
        SEND0 = in -> TRY0
        TRY0 = s0 -> TRY0 [] b0 -> SEND1 [] b1 -> TRY0
        SEND1 = in -> TRY1
        TRY1 = s1 -> TRY1 [] b1 -> SEND0 [] b0 -> TRY1
        FORTH = s0 -> (r0 -> FORTH |~| lost -> FORTH) [] s1 -> (r1 -> FORTH |~| lost -> FORTH)
        BACK = a0 -> (b0 -> BACK |~| lost -> BACK) [] a1 -> (b1 -> BACK |~| lost -> BACK)
        RECEIVE0 = r0 -> out -> a0 -> RECEIVE1 [] r1 -> a1 -> RECEIVE0
        RECEIVE1 = r1 -> out -> a1 -> RECEIVE0 [] r0 -> a0 -> RECEIVE1
        FORGETS = r0 -> out -> a0 -> FORGETS [] r1 -> out -> a1 -> FORGETS
        WIRES = FORTH ||| BACK
        SYSTEM = (SEND0 ||| RECEIVE0) [| {s0, s1, r0, r1, a0, a1, b0, b1} |] WIRES
        CARELESS = (SEND0 ||| FORGETS) [| {s0, s1, r0, r1, a0, a1, b0, b1} |] WIRES
        COPY = in -> out -> COPY";
    let hidden = "\\ {s0, s1, r0, r1, a0, a1, b0, b1, lost}";
    assert_eq!(hold(&format!("{protocol}\nassert COPY [T= SYSTEM {hidden}\nassert SYSTEM {hidden} [T= COPY")), [true, true]);
    let careless = format!("{protocol}\nassert COPY [T= CARELESS {hidden}");
    assert_eq!((hold(&careless), first_counterexample(&careless)), (vec![false], String::from("in, out, out")));
}

/// Milner's scheduler of three cells: tasks begin in turns, and any may end in between.
#[test]
fn milners_scheduler_starts_in_turns() {
    let verdicts = hold(
        "channel a1, a2, a3, b1, b2, b3, c1, c2, c3
         FIRST = a1 -> NEXT1
         NEXT1 = c2 -> b1 -> c1 -> FIRST [] b1 -> c2 -> c1 -> FIRST
         CELL2 = c2 -> a2 -> (c3 -> b2 -> CELL2 [] b2 -> c3 -> CELL2)
         CELL3 = c3 -> a3 -> (c1 -> b3 -> CELL3 [] b3 -> c1 -> CELL3)
         RING = (FIRST [| {c2} |] CELL2) [| {c1, c3} |] CELL3
         TURNS = a1 -> a2 -> a3 -> TURNS
         WRONG = a1 -> a3 -> a2 -> WRONG
         STARTS = RING \\ {b1, b2, b3, c1, c2, c3}
         assert RING :[deadlock free]
         assert TURNS [T= STARTS
         assert STARTS [F= TURNS
         assert TURNS [F= STARTS
         assert WRONG [T= STARTS",
    );
    assert_eq!(verdicts, [true, true, true, true, false]);
}

/// Dijkstra's philosophers, any number: alike they starve, and with one who is left-handed, or a footman, they do not.
#[test]
fn philosophers_in_a_ring() {
    let table = |seats: usize, left_handed: bool, footman: bool| {
        let mut text = String::from("channel seat, leave");
        for seat in 0..seats {
            let after = (seat + 1) % seats;
            text.push_str(&format!(", t{seat}_{seat}, t{seat}_{after}, p{seat}_{seat}, p{seat}_{after}"));
        }
        let (mut all, mut forks, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        for seat in 0..seats {
            let (after, before) = ((seat + 1) % seats, (seat + seats - 1) % seats);
            let (one, two) = if left_handed && seat == 0 { (after, seat) } else { (seat, after) };
            text.push_str(&format!(
                "\nPHIL{seat} = seat -> t{seat}_{one} -> t{seat}_{two} -> p{seat}_{one} -> p{seat}_{two} -> leave -> PHIL{seat}
                 FORK{seat} = t{seat}_{seat} -> p{seat}_{seat} -> FORK{seat} \
                 [] t{before}_{seat} -> p{before}_{seat} -> FORK{seat}"
            ));
            all.push(format!("PHIL{seat}"));
            forks.push(format!("FORK{seat}"));
            taken.push(format!("t{seat}_{seat}, t{seat}_{after}, p{seat}_{seat}, p{seat}_{after}"));
        }
        text.push_str("\nROOM0 = seat -> ROOM1");
        let places = if footman { seats - 1 } else { seats };
        for inside in 1..places {
            text.push_str(&format!("\nROOM{inside} = seat -> ROOM{} [] leave -> ROOM{}", inside + 1, inside - 1));
        }
        text.push_str(&format!("\nROOM{places} = leave -> ROOM{}", places - 1));
        let nested = |names: &[String]| names.iter().skip(1).fold(names[0].clone(), |one, other| format!("({one} ||| {other})"));
        text.push_str(&format!(
            "\nTABLE = ({} [| {{{}}} |] {}) [| {{seat, leave}} |] ROOM0\nassert TABLE :[deadlock free [F]]",
            nested(&all),
            taken.join(", "),
            nested(&forks)
        ));
        text
    };
    for seats in 2..=4 {
        assert_eq!(hold(&table(seats, false, false)), [false], "{seats} seats");
        assert_eq!(hold(&table(seats, true, false)), [true], "{seats} seats, one left-handed");
        assert_eq!(hold(&table(seats, false, true)), [true], "{seats} seats, a footman");
    }
}

#[test]
fn every_wrong_script_has_a_place_and_an_expectation() {
    let cases = [
        ("channel", (1, 8), "the name of an event"),
        ("channel a,\nP = a -> STOP", (2, 3), "`transparent`, `assert` or a definition"),
        ("P = ?", (1, 5), "a process"),
        ("channel a\nP = a ->\nQ = STOP", (3, 3), "a definition"),
        ("P = STOP [| {a} |] STOP", (1, 14), "a declared event"),
        ("channel a\nP = STOP [| {a |] STOP", (2, 16), "`,` or `}`"),
        ("channel a\nP = STOP \\ a", (2, 12), "a set"),
        ("P(x = STOP", (1, 5), "`)`"),
        ("assert", (1, 7), "a process"),
        ("P = STOP\nassert P", (2, 9), "`[T=`"),
        ("P = STOP\nassert P :[lively]", (2, 12), "`deadlock free`"),
        ("P = STOP |~|", (1, 13), "a process"),
        ("channel a.b", (1, 10), "a definition"),
        ("P = if true then STOP", (1, 22), "`else`"),
        ("P = STOP)", (1, 9), "a definition"),
    ];
    let mut wrong = Vec::new();
    for (text, place, expected) in cases {
        let error = Script::read(text).map(|_| ()).unwrap_err();
        if (error.place.line, error.place.column) != place || !error.expected.contains(expected) {
            wrong.push(format!("{text:?}: {error}; {expected} at {place:?} was to be expected"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
