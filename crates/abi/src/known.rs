//! Code without instrumentation whose calls are known to order nothing, so that they are not recorded either. Why that holds of
//! each library stands in `crates/pipeline/src/analyse/libraries.rs`, with what an entry has to fulfil.

/// Libraries, by SONAME up to the version.
pub const LIBRARIES: [&str; 39] = [
    "libz.so",
    "libz-ng.so",
    "libbz2.so",
    "liblzma.so",
    "libzstd.so",
    "liblz4.so",
    "liblzo2.so",
    "libsnappy.so",
    "libdeflate.so",
    "libbrotlicommon.so",
    "libbrotlienc.so",
    "libbrotlidec.so",
    "libxxhash.so",
    "libcrc32c.so",
    "libm.so",
    "libmvec.so",
    "libgmp.so",
    "libmpfr.so",
    "libmpc.so",
    "libpcre.so",
    "libpcre2-8.so",
    "libpcre2-16.so",
    "libpcre2-32.so",
    "libexpat.so",
    "libcrypt.so",
    "libfmt.so",
    "libpng16.so",
    "libjpeg.so",
    "libyaml-0.so",
    "libgcc_s.so",
    "libresolv.so",
    "libnss_files.so",
    "libnss_dns.so",
    "libnss_compat.so",
    "libnss_systemd.so",
    "libnss_myhostname.so",
    "libnss_mymachines.so",
    "libnss_resolve.so",
    "libcap.so",
];

/// Functions of libraries of which others do order threads: the SONAME, and names; one that ends in `*` stands for all names that
/// begin so.
///
/// GLib: all that they read and write is what they are passed, and memory that they get from `malloc`, which is seen. Not here:
/// what counts references, what interns, and what gives out memory of GLib's own allocator that callers look into (strings with
/// a length, arrays, lists), since who gets such memory comes behind who had it.
const FUNCTIONS: [(&str, &[&str]); 1] = [("libglib-2.0.so.0", &GLIB)];

const GLIB: [&str; 58] = [
    "g_ascii_*",
    "g_direct_equal",
    "g_direct_hash",
    "g_double_equal",
    "g_double_hash",
    "g_free",
    "g_hash_table_add",
    "g_hash_table_contains",
    "g_hash_table_find",
    "g_hash_table_foreach*",
    "g_hash_table_insert",
    "g_hash_table_iter_*",
    "g_hash_table_lookup*",
    "g_hash_table_remove*",
    "g_hash_table_replace",
    "g_hash_table_size",
    "g_hash_table_steal*",
    "g_int64_equal",
    "g_int64_hash",
    "g_int_equal",
    "g_int_hash",
    "g_malloc",
    "g_malloc0",
    "g_malloc0_n",
    "g_malloc_n",
    "g_memdup*",
    "g_realloc*",
    "g_str_equal",
    "g_str_has_*",
    "g_str_hash",
    "g_strcanon",
    "g_strchomp",
    "g_strchug",
    "g_strcmp0",
    "g_strconcat",
    "g_strdelimit",
    "g_strdup",
    "g_strdup_printf",
    "g_strdup_vprintf",
    "g_strdupv",
    "g_strfreev",
    "g_string_append*",
    "g_string_assign",
    "g_string_equal",
    "g_string_erase",
    "g_string_hash",
    "g_string_insert*",
    "g_string_overwrite*",
    "g_string_prepend*",
    "g_string_printf",
    "g_string_set_size",
    "g_string_truncate",
    "g_strjoin*",
    "g_strndup",
    "g_strnfill",
    "g_strsplit*",
    "g_strstr_len",
    "g_try_malloc*",
];

/// Whether a library with this SONAME orders nothing: the same up to the version.
pub fn is_known(soname: &[u8]) -> bool {
    let is_behind = |rest: &[u8]| rest.is_empty() || rest[0] == b'.';
    LIBRARIES.iter().any(|known| soname.strip_prefix(known.as_bytes()).is_some_and(is_behind))
}

/// The SONAMEs of libraries whose function of this name orders nothing.
pub fn libraries_where_known(function: &[u8]) -> impl Iterator<Item = &'static str> {
    let is_meant = move |name: &&str| match name.strip_suffix('*') {
        Some(beginning) => function.starts_with(beginning.as_bytes()),
        None => function == name.as_bytes(),
    };
    FUNCTIONS.iter().filter(move |(_, names)| names.iter().any(&is_meant)).map(|(library, _)| *library)
}
