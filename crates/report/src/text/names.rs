//! Long names, shortened: of functions and of files.
//!
//! Debug information names a function with its return type, its parameters and every argument of its templates, which may take
//! ten lines. What tells functions apart for their author is the path of the name, and that stays.

/// Names up to this many characters stay whole.
const SHORT: usize = 60;

/// Names with brackets that are none.
const ODD: [&str; 3] = ["operator<", "operator>", "operator->"];

/// The name without arguments of templates, parameters and return type, unless it is short.
pub fn function(name: &str) -> String {
    // Brackets that are no brackets: what is left of such a name would be wrong.
    let has_odd_brackets = ODD.iter().any(|operator| name.contains(operator));
    if name.chars().count() <= SHORT || has_odd_brackets {
        return name.to_owned();
    }
    path_of_function(name)
}

/// The name without arguments of templates, parameters and return type.
pub fn path_of_function(name: &str) -> String {
    if ODD.iter().any(|operator| name.contains(operator)) {
        return name.to_owned();
    }
    let bare = without_groups(&name.replace("operator()", CALL)).replace("(…)::", "::").replace(CALL, "operator()");
    let path = bare.strip_suffix("(…) const").or_else(|| bare.strip_suffix("(…)")).unwrap_or(&bare);
    // `void f<…>(…)` has a return type; `operator new`, `f(…)::{lambda(…)#1}` and `<A as B>::c` only look as if.
    let last = match path.rsplit_once(' ') {
        Some((before, last)) if !before.contains("operator") && !before.contains(['<', '{', '(']) => last,
        _ => path,
    };
    last.to_owned()
}

/// Stands for `operator()` while brackets are counted.
const CALL: &str = "operator\u{0}";

/// What stands in `<…>`, left out, and in `(…)`, as `(…)`; of both the outermost. A name that begins with `<` is of Rust: what is
/// in there is its path, and only what is in brackets within is left out.
fn without_groups(name: &str) -> String {
    let mut text = String::new();
    let mut open: Vec<char> = Vec::new();
    let outermost = usize::from(name.starts_with('<'));
    for (at, c) in name.char_indices() {
        let in_namespace = name[at..].starts_with("(anonymous namespace)") || name[..at].ends_with("(anonymous namespace");
        match c {
            _ if in_namespace && open.len() <= outermost => text.push(c),
            '<' | '(' => {
                if open.len() == outermost && c == '(' {
                    text.push_str("(…)");
                } else if open.len() < outermost {
                    text.push(c);
                }
                open.push(c);
            }
            '>' | ')' if name[..at].ends_with('-') && c == '>' => {}
            '>' | ')' => {
                open.pop();
                if open.len() < outermost {
                    text.push(c);
                }
            }
            _ if open.len() <= outermost => text.push(c),
            _ => {}
        }
    }
    text
}

/// The path as seen from the folder, if it lies below it; without the detours that builds in a folder of their own make, as in
/// `/home/user/project/build/../src/a.c`.
pub fn path(path: &str, folder: &str) -> String {
    let path = without_detours(path);
    match path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) if !folder.is_empty() => rest.to_owned(),
        _ => path,
    }
}

fn without_detours(path: &str) -> String {
    if !path.contains("/../") {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            ("..", Some(last)) if !["", ".", ".."].contains(last) => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_stay() {
        for name in ["main", "Stats::add(int)", "std::vector<int, std::allocator<int> >::push_back(int&&)", "core::ptr::drop<T>"]
        {
            assert_eq!(function(name), name);
        }
    }

    #[test]
    fn long_names_keep_their_path() {
        for (name, short) in [
            (
                "void std::__invoke_impl<void, void (*)(int), int>(std::__invoke_other, void (*&&)(int), int&&)",
                "std::__invoke_impl",
            ),
            (
                "std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)(int), int> > >::_M_run()",
                "std::thread::_State_impl::_M_run",
            ),
            (
                "pool::Pool::submit(std::function<void (int, std::vector<int> const&)>)::{lambda(int)#1}::operator()(int) const",
                "pool::Pool::submit::{lambda(…)#1}::operator()",
            ),
            (
                "<std::collections::hash::map::HashMap<K, V, S> as core::iter::traits::collect::Extend<(K, V)>>::extend",
                "<std::collections::hash::map::HashMap as core::iter::traits::collect::Extend>::extend",
            ),
            (
                "(anonymous namespace)::a_function_with_a_very_long_name_in_an_unnamed_namespace(int, int)",
                "(anonymous namespace)::a_function_with_a_very_long_name_in_an_unnamed_namespace",
            ),
            (
                "bool operator< <char, std::char_traits<char> >(std::basic_string<char> const&, char const*)",
                "bool operator< <char, std::char_traits<char> >(std::basic_string<char> const&, char const*)",
            ),
        ] {
            assert_eq!(function(name), short, "{name}");
        }
    }

    #[test]
    fn paths_are_seen_from_the_folder() {
        assert_eq!(path("/src/p/src/a.c", "/src/p"), "src/a.c");
        assert_eq!(path("/src/p2/a.c", "/src/p"), "/src/p2/a.c");
        assert_eq!(path("/src/p/a.c", ""), "/src/p/a.c");
        assert_eq!(path("/src/p/build/../src/a.c", "/src/p"), "src/a.c");
        assert_eq!(path("/src/p/build/sub/../../a.c", "/src/p"), "a.c");
        assert_eq!(path("../csu/../nptl/a.c", ""), "../nptl/a.c");
        assert_eq!(path("/../a.c", ""), "/../a.c");
    }
}
