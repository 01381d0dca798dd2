//! `stack_trace_format`: a frame as the user wants to see it.
//!
//! | | |
//! |---|---|
//! | `%%` | a percent sign |
//! | `%n` | number of the frame |
//! | `%p` | address |
//! | `%m`, `%o`, `%b` | module, offset in it, build-id in parentheses |
//! | `%f`, `%q` | function; offset in it, which is not known here: 0x0 |
//! | `%s`, `%l`, `%c` | file, line, column |
//! | `%F` | `in function`, or nothing |
//! | `%S` | `file:line:column` |
//! | `%L` | that, or `(module+offset)` |
//! | `%M` | `(module's name+offset)`, or the address |

use crate::format::Options;
use crate::warning::{Frame, Variable};
use std::fmt::Write as _;

pub const NULL: &str = "<null>";
/// How ThreadSanitizer prints frames.
pub const FRAME_FORMAT: &str = "    #%n %f %S %M";

/// Names of the program's must not bring line ends or escape sequences into a report.
pub fn clean(text: &str) -> String {
    rashomon_event::harmless(text).into_owned()
}

/// As pointers are printed.
pub fn pointer(address: u64) -> String {
    format!("{address:#014x}")
}

pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Cuts off what lies before and with the first occurrence of the prefix; what is left loses its `./`.
pub fn strip_prefix<'a>(path: &'a str, prefix: &str) -> &'a str {
    if prefix.is_empty() {
        return path;
    }
    match path.find(prefix) {
        Some(at) => {
            let rest = &path[at + prefix.len()..];
            rest.strip_prefix("./").unwrap_or(rest)
        }
        None => path,
    }
}

fn source(file: Option<&str>, line: Option<u32>, column: Option<u32>, options: &Options) -> String {
    let Some(file) = file else { return NULL.to_owned() };
    let mut text = clean(strip_prefix(file, &options.strip_path_prefix));
    match (line, column) {
        (None, _) => {}
        (Some(line), Some(column)) if options.vs_style => text.push_str(&format!("({line},{column})")),
        (Some(line), None) if options.vs_style => text.push_str(&format!("({line})")),
        (Some(line), Some(column)) => text.push_str(&format!(":{line}:{column}")),
        (Some(line), None) => text.push_str(&format!(":{line}")),
    }
    text
}

fn build_id(frame: &Frame) -> String {
    frame.build_id.as_ref().map_or(String::new(), |id| format!(" (BuildId: {})", clean(id)))
}

/// Functions of a runtime that stand in for the program's have the names of these.
fn function(frame: &Frame) -> Option<String> {
    let name = frame.function.as_deref()?;
    let name = ["___interceptor_", "__interceptor_trampoline_", "__interceptor_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    Some(clean(name))
}

/// One frame.
pub fn render(format: &str, number: usize, frame: &Frame, options: &Options) -> String {
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let or_null = |value: Option<&str>| value.map_or(NULL.to_owned(), clean);
        let piece = match rest.next() {
            Some('%') => "%".to_owned(),
            Some('n') => number.to_string(),
            Some('p') => pointer(frame.address),
            Some('m') => or_null(frame.module.as_deref().map(|module| strip_prefix(module, &options.strip_path_prefix))),
            Some('o') => format!("{:#x}", frame.offset),
            Some('b') => build_id(frame).trim_start().to_owned(),
            Some('f') => function(frame).unwrap_or_else(|| NULL.to_owned()),
            Some('q') => "0x0".to_owned(),
            Some('s') => or_null(frame.file.as_deref().map(|file| strip_prefix(file, &options.strip_path_prefix))),
            Some('l') => frame.line.unwrap_or(0).to_string(),
            Some('c') => frame.column.unwrap_or(0).to_string(),
            Some('F') => function(frame).map_or(String::new(), |name| format!("in {name}")),
            Some('S') => source(frame.file.as_deref(), frame.line, frame.column, options),
            Some('L') => match (&frame.file, &frame.module) {
                (Some(file), _) => source(Some(file), frame.line, frame.column, options),
                (None, Some(module)) => {
                    let module = clean(strip_prefix(module, &options.strip_path_prefix));
                    format!("({module}+{:#x}){}", frame.offset, build_id(frame))
                }
                (None, None) => "(<unknown module>)".to_owned(),
            },
            Some('M') => match &frame.module {
                Some(module) => format!("({}+{:#x}){}", clean(base_name(module)), frame.offset, build_id(frame)),
                None => format!("({})", pointer(frame.address)),
            },
            Some(other) => format!("%{other}"),
            None => "%".to_owned(),
        };
        text.push_str(&piece);
    }
    text
}

/// A variable: `%g` its name, `%s` and `%l` where it is declared, `%%` a percent sign.
pub fn render_variable(format: &str, variable: &Variable, options: &Options) -> String {
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        let _ = match (c, (c == '%').then(|| rest.next()).flatten()) {
            ('%', Some('g')) => write!(text, "{}", clean(&variable.name)),
            ('%', Some('s')) => {
                let file = variable.file.as_deref().map_or(NULL, |file| strip_prefix(file, &options.strip_path_prefix));
                write!(text, "{}", clean(file))
            }
            ('%', Some('l')) => write!(text, "{}", variable.line.unwrap_or(0)),
            ('%', Some(other)) => write!(text, "{}", if other == '%' { String::from("%") } else { format!("%{other}") }),
            (c, _) => write!(text, "{c}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame {
            address: 0x55_0000_1235,
            function: Some("__interceptor_f(int)".into()),
            file: Some("/src/a/./b.c".into()),
            line: Some(7),
            column: Some(3),
            module: Some("/bin/prog".into()),
            offset: 0x1234,
            build_id: Some("abcd".into()),
            inlined: false,
        }
    }

    #[test]
    fn every_directive() {
        let options = Options { strip_path_prefix: "/a/".into(), ..Options::default() };
        let text = render("%% %n %p %m %o %b %f %q %s %l %c %F|%S|%L|%M%z%", 4, &frame(), &options);
        assert_eq!(
            text,
            "% 4 0x005500001235 /bin/prog 0x1234 (BuildId: abcd) f(int) 0x0 b.c 7 3 in \
                f(int)|b.c:7:3|b.c:7:3|(prog+0x1234) (BuildId: abcd)%z%"
        );
    }

    #[test]
    fn what_is_not_known() {
        let text = render("%f %S %L %M", 0, &Frame { address: 0x1000, ..Frame::default() }, &Options::default());
        assert_eq!(text, "<null> <null> (<unknown module>) (0x000000001000)");
        let text = render("%L %F.", 0, &Frame { file: None, ..frame() }, &Options::default());
        assert_eq!(text, "(/bin/prog+0x1234) (BuildId: abcd) in f(int).");
    }

    #[test]
    fn control_characters_stay_out() {
        let odd = Frame { function: Some("a\n\x1b[31m".into()), ..frame() };
        assert_eq!(render("%f", 0, &odd, &Options::default()), "a\\n\\u{1b}[31m");
    }
}
