// One operation, many times: what a primitive costs. Each thread has its own memory, so that nothing races.
//
// primitives                                   the names, each with the bytes and the threads that it makes sense for
// primitives NAME BYTES THREADS NANOSECONDS    nanoseconds an operation, on standard output, measured for about so long
// primitives NAME BYTES THREADS OPERATIONS traced
//     says its process id, waits for a line, then each thread does so many operations between two breakpoints (int3)
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 16
#define LARGEST (1 << 16)
#define FRESH (64 << 20)

struct worker {
    _Alignas(128) int number;
    size_t bytes;
    long count;
    char *from, *to, *fresh;
    size_t used;
    int ends[2];
    pthread_mutex_t mutex;
    volatile long sum;
};

static int threads;
static struct worker workers[MOST_THREADS];
static pthread_barrier_t barrier;
static pthread_mutex_t shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphores[MOST_THREADS];
static _Atomic long counter;
static long turn, protected_sum;
static int table[1 << 12];
static _Thread_local void *volatile kept;

// The compiler is not to replace the call by instructions.
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile move)(void *, const void *, size_t) = memmove;
static void *(*volatile set)(void *, int, size_t) = memset;
static int (*volatile compare)(const void *, const void *, size_t) = memcmp;
static size_t (*volatile length)(const char *) = strlen;
static char *(*volatile copy_string)(char *, const char *) = strcpy;
static int (*volatile compare_strings)(const char *, const char *) = strcmp;
static char *(*volatile find)(const char *, int) = strchr;

static void must(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(2);
    }
}

#define LOOP for (long i = 0; i < w->count; i++)

static void copies(struct worker *w) { LOOP copy(w->to, w->from, w->bytes); }
static void copies_unaligned(struct worker *w) { LOOP copy(w->to + 3, w->from + 5, w->bytes); }
static void moves(struct worker *w) { LOOP move(w->to, w->to + 64, w->bytes); }
static void sets(struct worker *w) { LOOP set(w->to, (int)i, w->bytes); }
static void compares(struct worker *w) { LOOP w->sum += compare(w->to, w->from, w->bytes); }
static void lengths(struct worker *w) { LOOP w->sum += length(w->from); }
static void copies_strings(struct worker *w) { LOOP copy_string(w->to, w->from); }
static void compares_strings(struct worker *w) { LOOP w->sum += compare_strings(w->to, w->from); }
static void finds(struct worker *w) { LOOP w->sum += find(w->from, '!') != NULL; }

// Memory that nobody has touched: 64 MB, then the same from its begin, as new pages.
static void sets_fresh(struct worker *w) {
    LOOP {
        if (w->used + w->bytes > FRESH) {
            must(munmap(w->fresh, FRESH) == 0, "munmap");
            w->fresh = mmap(NULL, FRESH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            must(w->fresh != MAP_FAILED, "mmap");
            w->used = 0;
        }
        set(w->fresh + w->used, 1, w->bytes);
        w->used += w->bytes;
    }
}

// The same bytes in another epoch each time.
static void copies_between_locks(struct worker *w) {
    LOOP {
        pthread_mutex_lock(&w->mutex);
        copy(w->to, w->from, w->bytes);
        pthread_mutex_unlock(&w->mutex);
    }
}

static void writes_and_reads(struct worker *w) {
    LOOP {
        must(write(w->ends[1], w->from, w->bytes) == (ssize_t)w->bytes, "write");
        must(read(w->ends[0], w->to, w->bytes) == (ssize_t)w->bytes, "read");
    }
}

static void sends_and_receives(struct worker *w) {
    LOOP {
        must(send(w->ends[1], w->from, w->bytes, 0) == (ssize_t)w->bytes, "send");
        must(recv(w->ends[0], w->to, w->bytes, 0) == (ssize_t)w->bytes, "recv");
    }
}

static void counts_events(struct worker *w) {
    uint64_t value = 1;
    LOOP {
        must(write(w->ends[0], &value, 8) == 8, "write");
        must(read(w->ends[0], &value, 8) == 8, "read");
    }
}

static void polls(struct worker *w) {
    struct epoll_event found;
    uint64_t value = 1;
    LOOP {
        must(write(w->ends[0], &value, 8) == 8, "write");
        must(epoll_wait(w->ends[1], &found, 1, -1) == 1, "epoll_wait");
        must(read(w->ends[0], &value, 8) == 8, "read");
    }
}

static void locks_own(struct worker *w) {
    LOOP {
        pthread_mutex_lock(&w->mutex);
        w->sum++;
        pthread_mutex_unlock(&w->mutex);
    }
}

static void locks_shared(struct worker *w) {
    LOOP {
        pthread_mutex_lock(&shared_mutex);
        protected_sum++;
        pthread_mutex_unlock(&shared_mutex);
    }
}

static void tries(struct worker *w) {
    LOOP if (pthread_mutex_trylock(&w->mutex) == 0) pthread_mutex_unlock(&w->mutex);
}

static void spins(struct worker *w) {
    LOOP {
        pthread_spin_lock(&spin);
        protected_sum++;
        pthread_spin_unlock(&spin);
    }
}

static void reads_locked(struct worker *w) {
    LOOP {
        pthread_rwlock_rdlock(&shared_rwlock);
        w->sum += protected_sum;
        pthread_rwlock_unlock(&shared_rwlock);
    }
}

static void writes_locked(struct worker *w) {
    LOOP {
        pthread_rwlock_wrlock(&shared_rwlock);
        protected_sum++;
        pthread_rwlock_unlock(&shared_rwlock);
    }
}

static void waits(struct worker *w) {
    LOOP {
        pthread_mutex_lock(&shared_mutex);
        while (turn % threads != w->number)
            pthread_cond_wait(&turned, &shared_mutex);
        turn++;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&shared_mutex);
    }
}

static void signals_none(struct worker *w) { LOOP pthread_cond_signal(&turned); }

static void hands_over(struct worker *w) {
    LOOP {
        sem_wait(&semaphores[w->number]);
        sem_post(&semaphores[(w->number + 1) % threads]);
    }
}

static void loads(struct worker *w) { LOOP w->sum += atomic_load_explicit(&counter, memory_order_acquire); }
static void stores(struct worker *w) { LOOP atomic_store_explicit(&counter, i, memory_order_release); }
static void adds(struct worker *w) { LOOP atomic_fetch_add(&counter, 1); }
static void adds_relaxed(struct worker *w) { LOOP atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed); }

static void exchanges(struct worker *w) {
    LOOP {
        long seen = atomic_load_explicit(&counter, memory_order_relaxed);
        atomic_compare_exchange_strong(&counter, &seen, seen + 1);
    }
}

static void *nothing(void *unused) { return unused; }

static void creates(struct worker *w) {
    LOOP {
        pthread_t made;
        must(pthread_create(&made, NULL, nothing, NULL) == 0, "pthread_create");
        pthread_join(made, NULL);
    }
}

static void allocates(struct worker *w) {
    LOOP {
        char *block = malloc(w->bytes);
        kept = block;
        block[0] = 1;
        free(block);
    }
}

static __attribute__((noinline)) long called(long i) {
    // An access, so that the compiler's instrumentation enters and leaves.
    return i + table[i & 4095];
}

static void calls(struct worker *w) { LOOP w->sum += called(i); }

static void reads(struct worker *w) {
    long sum = 0;
    LOOP sum += ((volatile int *)table)[i & 4095];
    w->sum = sum;
}

static void writes(struct worker *w) { LOOP ((volatile char *)w->to)[i & 4095] = 1; }

static const struct primitive {
    const char *name;
    void (*does)(struct worker *);
    // Bytes and threads that it is measured with, up to the first 0.
    int bytes[7], threads[4];
} primitives[] = {
    {"memcpy", copies, {8, 64, 512, 4096, 65536}, {1, 2, 4}},
    {"memcpy-unaligned", copies_unaligned, {13, 512}, {1}},
    {"memcpy-new-epoch", copies_between_locks, {8, 512, 4096}, {1, 2}},
    {"memmove", moves, {512}, {1}},
    {"memset", sets, {64, 4096}, {1, 2}},
    {"memset-fresh", sets_fresh, {512, 65536}, {1, 2}},
    {"memcmp", compares, {8, 512}, {1}},
    {"strlen", lengths, {32, 512}, {1, 2}},
    {"strcpy", copies_strings, {32, 512}, {1}},
    {"strcmp", compares_strings, {32, 512}, {1}},
    {"strchr", finds, {32}, {1}},
    {"pipe", writes_and_reads, {8, 256, 4096}, {1, 2}},
    {"socket", sends_and_receives, {256}, {1, 2}},
    {"eventfd", counts_events, {8}, {1}},
    {"epoll", polls, {8}, {1}},
    {"mutex-own", locks_own, {1}, {1, 2, 4}},
    {"mutex-shared", locks_shared, {1}, {2, 4}},
    {"mutex-try", tries, {1}, {1}},
    {"spinlock", spins, {1}, {1}},
    {"rwlock-read", reads_locked, {1}, {1, 2, 4}},
    {"rwlock-write", writes_locked, {1}, {1, 2}},
    {"condition", waits, {1}, {2}},
    {"signal-none", signals_none, {1}, {1}},
    {"semaphore", hands_over, {1}, {1, 2}},
    {"atomic-load", loads, {8}, {1, 2}},
    {"atomic-store", stores, {8}, {1, 2}},
    {"atomic-add", adds, {8}, {1, 2}},
    {"atomic-add-relaxed", adds_relaxed, {8}, {1}},
    {"atomic-exchange", exchanges, {8}, {1, 2}},
    {"thread", creates, {1}, {1}},
    {"malloc", allocates, {16, 4096}, {1, 2}},
    {"call", calls, {1}, {1}},
    {"read", reads, {4}, {1, 2, 4}},
    {"write", writes, {1}, {1, 2}},
};

#define COUNT (sizeof primitives / sizeof primitives[0])

static const struct primitive *chosen;
static int is_traced;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void prepare(struct worker *w, int number, size_t bytes) {
    const char *name = chosen->name;
    w->number = number;
    w->bytes = bytes;
    w->from = aligned_alloc(64, LARGEST + 128);
    w->to = aligned_alloc(64, LARGEST + 128);
    must(w->from && w->to, "aligned_alloc");
    memset(w->from, 'x', LARGEST + 128);
    memset(w->to, 'x', LARGEST + 128);
    w->used = FRESH;
    if (!strncmp(name, "str", 3))
        w->from[bytes] = w->to[bytes] = 0;
    if (!strcmp(name, "memset-fresh")) {
        w->fresh = mmap(NULL, FRESH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        must(w->fresh != MAP_FAILED, "mmap");
        w->used = 0;
    }
    pthread_mutex_init(&w->mutex, NULL);
    sem_init(&semaphores[number], 0, number == 0);
    if (!strcmp(name, "pipe"))
        must(pipe(w->ends) == 0, "pipe");
    if (!strcmp(name, "socket"))
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, w->ends) == 0, "socketpair");
    if (!strcmp(name, "eventfd") || !strcmp(name, "epoll")) {
        struct epoll_event wanted = {.events = EPOLLIN};
        w->ends[0] = eventfd(0, 0);
        w->ends[1] = epoll_create1(0);
        must(w->ends[0] >= 0 && epoll_ctl(w->ends[1], EPOLL_CTL_ADD, w->ends[0], &wanted) == 0, "epoll_ctl");
    }
}

static void *works(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(&barrier);
    if (is_traced)
        __asm__ volatile("int3" ::: "memory");
    chosen->does(w);
    if (is_traced)
        __asm__ volatile("int3" ::: "memory");
    pthread_barrier_wait(&barrier);
    return NULL;
}

// Nanoseconds that so many operations of each thread take.
static double measured(long count) {
    pthread_t running[MOST_THREADS];
    turn = 0;
    for (int i = 0; i < threads; i++) {
        workers[i].count = count;
        must(pthread_create(&running[i], NULL, works, &workers[i]) == 0, "pthread_create");
    }
    pthread_barrier_wait(&barrier);
    double begin = now();
    pthread_barrier_wait(&barrier);
    double end = now();
    for (int i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    return end - begin;
}

static void list(void) {
    for (size_t i = 0; i < COUNT; i++)
        for (int b = 0; primitives[i].bytes[b]; b++)
            for (int t = 0; t < 4 && primitives[i].threads[t]; t++)
                printf("%s %d %d\n", primitives[i].name, primitives[i].bytes[b], primitives[i].threads[t]);
}

int main(int count, char **arguments) {
    if (count == 1) {
        list();
        return 0;
    }
    must(count == 5 || count == 6, "primitives NAME BYTES THREADS NANOSECONDS");
    for (size_t i = 0; i < COUNT; i++)
        if (!strcmp(primitives[i].name, arguments[1]))
            chosen = &primitives[i];
    size_t bytes = strtoul(arguments[2], NULL, 10);
    threads = atoi(arguments[3]);
    double wanted = atof(arguments[4]);
    must(chosen && bytes > 0 && bytes <= LARGEST && threads > 0 && threads <= MOST_THREADS, "arguments");
    must(pthread_barrier_init(&barrier, NULL, threads + 1) == 0, "pthread_barrier_init");
    pthread_spin_init(&spin, 0);
    for (int i = 0; i < threads; i++)
        prepare(&workers[i], i, bytes);
    if (count == 6) {
        char line[16];
        measured(64);
        printf("%d\n", (int)getpid());
        fflush(stdout);
        must(fgets(line, sizeof line, stdin) != NULL, "standard input");
        is_traced = 1;
        measured(atol(arguments[4]));
        return 0;
    }
    long operations = 64;
    double taken = measured(operations);
    while (taken < wanted / 8 && operations < 1l << 40) {
        operations *= taken * 64 < wanted ? 8 : 2;
        taken = measured(operations);
    }
    operations = operations * (wanted / taken) + 1;
    printf("%.3f\n", measured(operations) / operations);
    return 0;
}
