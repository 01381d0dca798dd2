//! Whatever a runtime sends, and whatever is left of it, the reporter answers or refuses, and never panics.

use proptest::prelude::*;
use rashomon_abi::report::{HEAD_WORDS, Items, VERSION, Writer, head, item, kind};
use rashomon_reporter::{Session, serve};

/// Messages of every kind with every item.
fn conversation() -> Vec<Vec<u64>> {
    let message = |kind: u64, build: &dyn Fn(&mut Writer<'_>)| {
        let mut buffer = vec![0; 4096];
        let mut writer = Writer::new(&mut buffer, kind);
        build(&mut writer);
        writer.finish().unwrap().to_vec()
    };
    let own = std::env::current_exe().unwrap();
    vec![
        message(kind::HELLO, &|writer| {
            writer.item(item::PROCESS);
            writer.word(VERSION);
            writer.word(7);
            writer.item(item::OPTIONS);
            writer.text(b"second_deadlock_stack=1:print_suppressions=1");
            writer.item(item::SUPPRESSIONS);
            writer.text(b"race:^nothing$\n");
        }),
        message(kind::MODULES, &|writer| {
            writer.item(item::MODULE);
            [0x1000, 0x1000, 0x9000].iter().for_each(|&word| writer.word(word));
            writer.text(b"");
            writer.text(own.as_os_str().as_encoded_bytes());
        }),
        message(kind::WARNING, &|writer| {
            writer.item(item::HEAD);
            [5, 3, 11, 2].iter().for_each(|&word| writer.word(word));
            writer.item(item::ACCESS);
            [1, 0x1234, 4, 1, 2].iter().for_each(|&word| writer.word(word));
            writer.stack(&[1, 2]);
            writer.stack(&[0x2001, 0x2002]);
            writer.item(item::STACK);
            writer.word(1);
            writer.stack(&[0x3001]);
            writer.item(item::MUTEX);
            [0x5000, 1].iter().for_each(|&word| writer.word(word));
            writer.stack(&[0x2001]);
            writer.item(item::THREAD);
            [1, 99, 7, 0].iter().for_each(|&word| writer.word(word));
            writer.text(b"worker");
            writer.stack(&[]);
            for place in 0..6 {
                writer.item(item::LOCATION);
                [place, 0x1234, 0x1200, 64, 1, 3, 1, 2].iter().for_each(|&word| writer.word(word));
                writer.stack(&[0x2002]);
            }
            writer.item(item::UNIQUE_THREAD);
            writer.word(1);
            writer.item(item::SLEEP);
            writer.stack(&[0x2003]);
            writer.item(item::TAG);
            writer.word(2);
            writer.text(b"map");
            writer.text(b"race on a map");
        }),
        message(kind::SYMBOLIZE, &|writer| {
            writer.item(item::STACK);
            writer.word(0);
            writer.stack(&[0x2001]);
            writer.item(item::FORMAT);
            writer.text(b"%n %f %");
        }),
        message(kind::SYMBOLIZE_DATA, &|writer| {
            writer.item(item::ADDRESS);
            writer.word(0x2000);
            writer.item(item::FORMAT);
            writer.text(b"%g");
        }),
        message(kind::FINISH, &|writer| {
            writer.item(item::COUNTS);
            writer.word(1);
        }),
    ]
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The texts of every answer of a conversation.
fn answers(output: &[u8]) -> Vec<String> {
    let words: Vec<u64> = output.chunks_exact(8).map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap())).collect();
    let mut rest = words.as_slice();
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let (kind, length) = head([rest[0], rest[1]]).unwrap();
        assert_eq!(kind, kind::ANSWER);
        let mut items = Items::new(&rest[HEAD_WORDS..HEAD_WORDS + length]);
        let mut text = String::new();
        for (code, mut words) in items.by_ref() {
            if [item::TEXT, item::SUMMARY, item::TAIL].contains(&code) {
                text.push_str(&String::from_utf8(words.text().collect()).unwrap());
            }
        }
        assert_eq!(items.rest(), 0);
        texts.push(text);
        rest = &rest[HEAD_WORDS + length..];
    }
    texts
}

#[test]
fn a_whole_conversation_is_answered() {
    let input: Vec<u8> = conversation().iter().flat_map(|message| bytes(message)).collect();
    let mut output = Vec::new();
    serve(input.as_slice(), &mut output).unwrap();
    let texts = answers(&output);
    assert_eq!(texts.len(), 5, "modules want no answer");
    assert_eq!(texts[0], "");
    assert!(texts[1].starts_with("==================\nWARNING: ThreadSanitizer: race on a map (pid=7)\n"), "{}", texts[1]);
    assert!(
        texts[1].contains("  Modifying access of map at 0x000000001234 by thread T1 (mutexes: read M0, write M1")
            || texts[1].contains("(mutexes: write M0, read M1)"),
        "{}",
        texts[1]
    );
    assert!(texts[4].starts_with("ThreadSanitizer: reported 1 warnings\n"));
}

#[test]
fn another_version_and_other_bytes_are_refused() {
    let mut hello = conversation().remove(0);
    // HELLO's first item: its code, then the version.
    hello[HEAD_WORDS + 1] = (VERSION + 1).to_le();
    let error = serve(bytes(&hello).as_slice(), Vec::new()).unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
    let error = serve(&[b'x'; 64][..], Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("message 1: not a message"), "{error}");
    assert!(serve(&b""[..], Vec::new()).is_ok());
}

/// A small number, any, or a code with a count above it.
fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..40, any::<u64>(), (1_u64..24, 0_u64..12).prop_map(|(code, count)| code | count << 32)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_words(kind in 0_u64..9, body in prop::collection::vec(any_word(), 0..80)) {
        let body: Vec<u64> = body.iter().map(|word| word.to_le()).collect();
        if let Ok(Some(answer)) = Session::default().handle(kind, &body) {
            prop_assert!(!answer.encode().is_empty());
        }
    }

    #[test]
    fn damaged_conversations(
        which in 0_usize..6,
        at in any::<prop::sample::Index>(),
        word in prop_oneof![0_u64..16, any::<u64>()],
        cut in any::<prop::sample::Index>(),
    ) {
        let mut messages = conversation();
        let length = messages[which].len();
        messages[which][at.index(length)] = word.to_le();
        let whole: Vec<u8> = messages.iter().flat_map(|message| bytes(message)).collect();
        let mut output = Vec::new();
        // Refused or answered.
        let _ = serve(whole.as_slice(), &mut output);
        let _ = serve(&whole[..cut.index(whole.len())], &mut output);
    }
}
