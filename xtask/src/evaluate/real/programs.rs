//! The programs: how each is built, what it is given to do, who asks it, and what must come out.
//!
//! Everything is a line for `sh`. A build runs in a copy of the source, with `$CC`, `$CXX` and `$FLAGS`; the other lines run in the program's working folder, with `$B` for the folder of the build.

use crate::evaluate::debian::Part;

pub struct Real {
    pub name: &'static str,
    /// Debian's source package.
    pub package: &'static str,
    pub part: Part,
    /// Packages to build and run it with, and a file of each.
    pub needs: &'static [(&'static str, &'static str)],
    pub build: &'static str,
    /// A source of our own, which is put beside the build under this name.
    pub driver: Option<(&'static str, &'static str)>,
    /// Makes the input, once.
    pub input: &'static str,
    /// Before every execution.
    pub before: &'static str,
    /// The program, below `$B`, and its arguments.
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    pub client: Option<&'static str>,
    /// Prints what came out: the same with every build.
    pub outcome: &'static str,
}

/// Twelve megabytes of text-like bytes that a fixed generator draws.
const TEXT: &str = "awk 'BEGIN { srand(7); while (n < 12000000) { w = int(rand() * rand() * 3000); s = sprintf(\"w%x%s\", w * 7919, rand() < 0.1 ? \"\\n\" : \" \"); printf \"%s\", s; n += length(s) } }' >input";

/// Files of 60 kB to 600 kB, and a server that reads them on four threads.
const NGINX: &str = "awk 'BEGIN { for (f = 0; f < 10; f++) { for (i = 0; i < 6000 * (f + 1); i++) printf \"%d:%d\\n\", f, i > (\"file\" f) } }' && cat >nginx.conf <<'END'
error_log error.log;
pid nginx.pid;
thread_pool default threads=4;
events { worker_connections 64; }
http {
  access_log access.log;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server { listen 127.0.0.1:21413; root .; aio threads; sendfile off; output_buffers 2 16k; }
}
END";

/// Nucleotides of 80 taxa, each of which descends from an earlier one.
const ALIGNMENT: &str = "awk 'BEGIN { srand(5); for (i = 0; i < 80; i++) { p = int(rand() * i); printf \">t%d\\n\", i; for (j = 0; j < 200; j++) { \
    s[i, j] = i == 0 || rand() < 0.03 ? int(rand() * 4) : s[p, j]; printf \"%s\", substr(\"ACGT\", s[i, j] + 1, 1) } print \"\" } }' >input";

/// Proteins, of which two thirds resemble an earlier one.
const PROTEINS: &str = "awk 'BEGIN { srand(5); for (i = 0; i < 600; i++) { like = i > 0 && rand() < 0.6; p = int(rand() * i); n[i] = like ? n[p] : 100 + int(rand() * 100); \
    printf \">p%d\\n\", i; for (j = 0; j < n[i]; j++) { s[i, j] = like && rand() > 0.04 ? s[p, j] : substr(\"ACDEFGHIKLMNPQRSTVWY\", 1 + int(rand() * 20), 1); \
    printf \"%s\", s[i, j] } print \"\" } }' >input";

const OPENMP: (&str, &str) = ("libomp-19-dev", "/usr/lib/llvm-19/lib/libomp.so");

const MAKE: (&str, &str) = ("make", "/usr/bin/make");

pub const PROGRAMS: [Real; 10] = [
    Real {
        name: "zstd",
        package: "libzstd",
        part: Part::Everything,
        needs: &[MAKE],
        build: "make -j2 -C programs zstd CC=\"$CC\" CFLAGS=\"-O2 -g -w $FLAGS\" LDFLAGS=\"$FLAGS\" HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0",
        driver: None,
        input: TEXT,
        before: "rm -f output.zst",
        program: "programs/zstd",
        arguments: &["-q", "-f", "-T4", "-B512K", "-o", "output.zst", "input"],
        client: None,
        outcome: "zstd=$(command -v zstd) || zstd=$B/../native/programs/zstd; $zstd -q -d -c output.zst | cmp - input && cksum <output.zst",
    },
    Real {
        name: "lbzip2",
        package: "lbzip2",
        part: Part::Upstream,
        needs: &[MAKE, ("bzip2", "/bin/bzip2")],
        build: "./configure CC=\"$CC\" CFLAGS=\"-O2 -g -w -D_IO_ftrylockfile -D_IO_IN_BACKUP=0x100 $FLAGS\" LDFLAGS=\"$FLAGS\" --disable-dependency-tracking && make -j2",
        driver: None,
        input: TEXT,
        before: "rm -f input.bz2",
        program: "src/lbzip2",
        arguments: &["-k", "-f", "-n", "4", "input"],
        client: None,
        outcome: "bzip2 -d -c input.bz2 | cmp - input && cksum <input.bz2",
    },
    Real {
        name: "sqlite",
        package: "sqlite3",
        part: Part::Everything,
        needs: &[MAKE, ("tcl", "/usr/bin/tclsh")],
        build: "./configure CC=clang-19 --disable-shared --disable-readline --disable-dependency-tracking --enable-threadsafe >configured 2>&1; make sqlite3.c && $CC -O2 -g -w -pthread $FLAGS -I. -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION driver.c sqlite3.c -o driver -lm",
        driver: Some(("driver.c", include_str!("sqlite_driver.c"))),
        input: "true",
        before: "rm -f test.db*",
        program: "driver",
        arguments: &["test.db", "4", "40"],
        client: None,
        outcome: "cat output",
    },
    Real {
        name: "leveldb",
        package: "leveldb",
        part: Part::Everything,
        needs: &[MAKE, ("g++", "/usr/bin/g++")],
        build: "f=$(ls db/*.cc table/*.cc util/*.cc | grep -v -e _test.cc -e testutil -e leveldbutil -e windows -e _bench -e '/c.cc') && \
                $CXX -O2 -g -w -std=c++17 -pthread $FLAGS -I. -Iinclude -DLEVELDB_PLATFORM_POSIX=1 -DHAVE_FDATASYNC=1 -DHAVE_O_CLOEXEC=1 -DHAVE_CRC32C=0 -DHAVE_SNAPPY=0 driver.cc $f -o driver",
        driver: Some(("driver.cc", include_str!("leveldb_driver.cc"))),
        input: "true",
        before: "rm -rf test.db",
        program: "driver",
        arguments: &["test.db", "4", "4000"],
        client: None,
        outcome: "cat output",
    },
    Real {
        name: "memcached",
        package: "memcached",
        part: Part::Everything,
        needs: &[MAKE, ("libevent-dev", "/usr/include/event2/event.h")],
        build: "./configure CC=\"$CC\" CFLAGS=\"-O2 -g -w -pthread $FLAGS\" --disable-docs --disable-dependency-tracking --disable-coverage && \
                make -j2 memcached CFLAGS=\"-O2 -g -w -pthread $FLAGS\" && clang-19 -w -O1 -pthread client.c -o client",
        driver: Some(("client.c", include_str!("memcached_client.c"))),
        input: "true",
        before: "true",
        program: "memcached",
        arguments: &["-A", "-u", "root", "-l", "127.0.0.1", "-U", "0", "-t", "4", "-m", "64", "-p", "21411"],
        client: Some("$B/../native/client 21411 4 300 >answers"),
        outcome: "cat answers",
    },
    Real {
        name: "redis",
        package: "redis",
        part: Part::Everything,
        needs: &[MAKE],
        build: "make -j2 -C deps hiredis linenoise lua hdr_histogram CC=\"$CC\" CFLAGS=\"-O2 -g -w $FLAGS\" && \
                make -j2 -C src redis-server redis-benchmark redis-cli MALLOC=libc CC=\"$CC\" OPTIMIZATION=-O2 CFLAGS=\"-g -w $FLAGS\" LDFLAGS=\"$FLAGS\"",
        driver: None,
        input: "true",
        before: "rm -f dump.rdb temp-*.rdb",
        program: "src/redis-server",
        arguments: &["--port", "21412", "--io-threads", "4", "--io-threads-do-reads", "yes", "--save", "", "--appendonly", "no"],
        client: Some(
            "r=$B/../native/src; $r/redis-benchmark -p 21412 -q -n 400 -c 10 -t set,incr,lpush >/dev/null && $r/redis-cli -p 21412 bgsave >/dev/null && \
             { $r/redis-cli -p 21412 get counter:__rand_int__; $r/redis-cli -p 21412 llen mylist; } >answers",
        ),
        outcome: "cat answers; for i in 1 2 3 4 5 6 7 8 9 10; do test -e dump.rdb && break; sleep 0.2; done; test -s dump.rdb && echo saved",
    },
    Real {
        name: "nginx",
        package: "nginx",
        part: Part::Everything,
        needs: &[MAKE, ("curl", "/usr/bin/curl")],
        build: "./configure --with-cc=\"$CC\" --with-cc-opt=\"-O2 -g -w $FLAGS\" --with-ld-opt=\"$FLAGS\" --with-threads --without-pcre \
                --without-http_rewrite_module --without-http_gzip_module && make -j2",
        driver: None,
        input: NGINX,
        before: "mkdir -p logs; rm -f got.*",
        program: "objs/nginx",
        arguments: &["-p", ".", "-c", "nginx.conf", "-g", "daemon off; master_process off;"],
        client: Some("curl -fsS -Z --parallel-max 8 -o 'got.#1.#2' 'http://127.0.0.1:21413/file[0-9]?[1-4]' 2>curl.log"),
        outcome: "for f in 0 1 2 3 4 5 6 7 8 9; do for i in 1 2 3 4; do cmp file$f got.$f.$i || exit 1; done; done; cat got.* | cksum",
    },
    Real {
        name: "libuv",
        package: "libuv1",
        part: Part::Everything,
        needs: &[MAKE, ("cmake", "/usr/bin/cmake")],
        build: "cmake -S . -B built -DCMAKE_C_COMPILER=\"$CC\" -DCMAKE_C_FLAGS=\"-O2 -g -w $FLAGS\" -DCMAKE_BUILD_TYPE= -DBUILD_TESTING=OFF && make -j2 -C built uv_a && \
                for t in thread mutexes barrier condvar semaphore threadpool threadpool-cancel thread-equal async random signal-multiple-loops; do set -- \"$@\" test/test-$t.c; done && \
                $CC -O2 -g -w -pthread -D_GNU_SOURCE $FLAGS -Iinclude -Isrc -Itest driver.c \"$@\" built/libuv_a.a -o driver -ldl",
        driver: Some(("driver.c", include_str!("libuv_driver.c"))),
        input: "true",
        before: "rm -f output",
        program: "driver",
        arguments: &[],
        client: None,
        outcome: "cat output",
    },
    Real {
        name: "fasttree",
        package: "fasttree",
        part: Part::Everything,
        needs: &[MAKE, OPENMP],
        build: "make fasttreeMP CC=\"$CC\" CFLAGS=\"-O2 -g -w $FLAGS\"",
        driver: None,
        input: ALIGNMENT,
        before: "rm -f tree",
        program: "fasttreeMP",
        arguments: &["-nt", "-gtr", "-quiet", "-out", "tree", "input"],
        client: None,
        outcome: "cat tree",
    },
    Real {
        name: "cd-hit",
        package: "cd-hit",
        part: Part::Upstream,
        needs: &[MAKE, OPENMP],
        build: "make -j2 cd-hit CC=\"$CXX\" zlib=no CXXFLAGS=\"-g -w $FLAGS\"",
        driver: None,
        input: PROTEINS,
        before: "rm -f output output.clstr",
        program: "cd-hit",
        arguments: &["-i", "input", "-o", "output", "-c", "0.9", "-T", "4", "-M", "200"],
        client: None,
        outcome: "cat output output.clstr | cksum; grep -c '^>' output",
    },
];

/// Unused by some programs, but what a fresh machine has to have for every one.
pub const EVERYWHERE: [(&str, &str); 4] = [
    ("dpkg-dev", "/usr/bin/dpkg-source"),
    ("clang-19", "/usr/bin/clang-19"),
    ("libclang-rt-19-dev", "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.tsan-x86_64.a"),
    ("g++", "/usr/bin/g++"),
];
