//! Names as the source spells them.

use cpp_demangle::{DemangleOptions, Symbol};

/// The source name of a linker symbol; a name that is not mangled comes back as it is.
///
/// A suffix that a compiler appended behind a dot (`.constprop.0`, `.cold`, the number of a static local) is kept for mangled
/// names and cut off plain ones, where it is no part of what the source says.
pub fn demangle(name: &str) -> String {
    if (name.starts_with("_R") || is_legacy_rust(name))
        && let Ok(symbol) = rustc_demangle::try_demangle(name)
    {
        // The alternate form leaves out the hash.
        return format!("{symbol:#}");
    }
    if name.starts_with("_Z") {
        let options = DemangleOptions::new().no_return_type();
        if let Some(text) = Symbol::new(name).ok().and_then(|symbol| symbol.demangle(&options).ok()) {
            return text;
        }
    }
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name.to_owned(),
    }
}

/// The first mangling scheme of rustc is the C++ one with a last component `h` and 16 hexadecimal digits.
fn is_legacy_rust(name: &str) -> bool {
    let Some(end) = name.strip_prefix("_ZN").and_then(|rest| rest.find("17h").map(|at| &rest[at + 3..])) else {
        return false;
    };
    end.len() >= 17 && end.as_bytes()[..16].iter().all(u8::is_ascii_hexdigit) && end.as_bytes()[16] == b'E'
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn every_scheme() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("counter.0"), "counter");
        assert_eq!(demangle("_Z3addii"), "add(int, int)");
        assert_eq!(demangle("_ZN5queue4headE"), "queue::head");
        assert_eq!(demangle("_ZN3std2rt10lang_start17h0123456789abcdefE"), "std::rt::lang_start");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_Zsomething else"), "_Zsomething else");
        assert_eq!(demangle(""), "");
    }
}
