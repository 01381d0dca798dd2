//! Functions of programs that call one of the library's under a name of their own.

/// Whether a function's name says that memory is had from it: `xcalloc`, `g_malloc0`, `pool::alloc(unsigned long)`.
pub fn hands_out_memory(function: &str) -> bool {
    let name = function.split_once('(').map_or(function, |(name, _)| name);
    let name = name.strip_suffix("_or_null").unwrap_or(name);
    let name = name.trim_end_matches(|end: char| end.is_ascii_digit() || end == 'z' || end == '_').to_ascii_lowercase();
    ["alloc", "strdup", "strndup", "memdup"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hands_out_memory_is_told_by_its_name() {
        for name in [
            "xcalloc",
            "stdalloc__calloc",
            "g_malloc0",
            "av_mallocz",
            "pool::alloc(unsigned long)",
            "xstrdup_or_null",
            "realloc_",
        ] {
            assert!(hands_out_memory(name), "{name}");
        }
        for name in ["allocate_buffers", "queueInit(int)", "main", "alloc_table(int)"] {
            assert!(!hands_out_memory(name), "{name}");
        }
    }
}
