// A program that does everything at once, and ends in every way. Its whole behaviour follows from its seed and from how its
// threads run.
//
// Arguments: the seed, how many generations of processes may follow, and the folder of the libraries it loads.
// It says on standard error, in one line that begins with `chaos:`, whatever went wrong that it can notice by itself: a lost
// update, a child that ended otherwise than it was told to. Everything it does ends by itself: locks are taken for a limited
// time, loops are bounded, every thread is joined unless the process ends first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOCKS = 4, THREADS = 5, STEPS = 60, BLOCKS = 16, PASSED = 23 };
enum ending { RETURN, EXIT, EXIT_AT_ONCE, QUICK_EXIT, EXIT_IN_THREAD, ABORT, FAULT, KILL, EXECUTE, LEAVE_MAIN, ENDINGS };

extern char **environ;
static char *program, *libraries;
static int generations;
static enum ending ending;
static uint64_t seed;

static pthread_mutex_t locks[LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                       PTHREAD_MUTEX_INITIALIZER};
static long guarded[LOCKS];
static atomic_long counted[LOCKS];
static pthread_rwlock_t readers_or_writer = PTHREAD_RWLOCK_INITIALIZER;
static long written;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static atomic_int handled;
static _Atomic(void *) shelf[BLOCKS];
static __thread long own;

static uint64_t next(uint64_t *state) {
    uint64_t mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

static unsigned below(uint64_t *state, unsigned limit) {
    return next(state) % limit;
}

static void complain(const char *what, long a, long b) {
    char line[160];
    int length = snprintf(line, sizeof line, "chaos: %s: %ld %ld (seed %llu, process %d)\n", what, a, b, (unsigned long long)seed,
                          (int)getpid());
    if (write(2, line, length) != length)
        _exit(99);
}

static void on_signal(int number) {
    (void)number;
    atomic_fetch_add(&handled, 1);
}

static void soon(struct timespec *time) {
    clock_gettime(CLOCK_REALTIME, time);
    time->tv_nsec += 2000000;
    if (time->tv_nsec >= 1000000000) {
        time->tv_nsec -= 1000000000;
        time->tv_sec++;
    }
}

static void count_under(int index) {
    struct timespec limit;
    soon(&limit);
    if (pthread_mutex_timedlock(&locks[index], &limit) != 0)
        return;
    guarded[index]++;
    atomic_fetch_add(&counted[index], 1);
    pthread_mutex_unlock(&locks[index]);
}

static void wait_under(int index) {
    struct timespec limit;
    soon(&limit);
    if (pthread_mutex_timedlock(&locks[index], &limit) != 0)
        return;
    pthread_cond_timedwait(&condition, &locks[index], &limit);
    guarded[index]++;
    atomic_fetch_add(&counted[index], 1);
    pthread_mutex_unlock(&locks[index]);
}

static void read_or_write(uint64_t *state) {
    struct timespec limit;
    soon(&limit);
    if (below(state, 3) == 0) {
        if (pthread_rwlock_timedwrlock(&readers_or_writer, &limit) != 0)
            return;
        written++;
    } else {
        if (pthread_rwlock_timedrdlock(&readers_or_writer, &limit) != 0)
            return;
        own += written & 1;
    }
    pthread_rwlock_unlock(&readers_or_writer);
}

static void churn(uint64_t *state) {
    size_t size = 1 + below(state, 1 << below(state, 18));
    char *block = malloc(size);
    if (block == NULL)
        return;
    memset(block, (int)size, size);
    if (below(state, 2) == 0) {
        char *larger = realloc(block, size + 100);
        if (larger == NULL) {
            free(block);
            return;
        }
        block = larger;
        if (block[size - 1] != (char)size)
            complain("realloc lost bytes", (long)size, block[size - 1]);
    }
    free(atomic_exchange(&shelf[below(state, BLOCKS)], block));
}

static void map_and_unmap(void) {
    size_t size = 3 * 4096;
    char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return;
    area[4096] = 1;
    munmap(area, size);
}

static void use_library(uint64_t *state) {
    char path[600];
    snprintf(path, sizeof path, "%s/libplugin%u.so", libraries, below(state, 2));
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        return;
    long (*add)(long) = (long (*)(long))dlsym(library, "add");
    if (add == NULL || add(3) < 3)
        complain("library", 0, 0);
    dlclose(library);
}

static void jump(uint64_t *state) {
    jmp_buf place;
    volatile unsigned times = below(state, 4);
    if (setjmp(place) != 0 && times == 0)
        return;
    if (times > 0) {
        times--;
        longjmp(place, 1);
    }
}

static void talk(void) {
    int ends[2];
    char byte = 'x';
    if (pipe(ends) != 0)
        return;
    if (write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1 && byte != 'x')
        complain("pipe", byte, 0);
    close(ends[0]);
    close(ends[1]);
}

static void *brief(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument;
    own++;
    count_under(below(&state, LOCKS));
    churn(&state);
    if (below(&state, 4) == 0)
        pthread_exit(NULL);
    return NULL;
}

static void short_thread(uint64_t *state) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, brief, (void *)(uintptr_t)next(state)) != 0)
        return;
    if (below(state, 3) == 0)
        pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}

static void execute(uint64_t *state) {
    char number[32], left[16];
    snprintf(number, sizeof number, "%llu", (unsigned long long)next(state));
    snprintf(left, sizeof left, "%d", generations - 1);
    char *arguments[] = {program, number, left, libraries, NULL};
    // The timer would go on, and the new program has no handler yet.
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    execve("/proc/self/exe", arguments, environ);
    complain("exec failed", errno, 0);
    _exit(98);
}

// Ends the process, in most of the ways there are.
static void end(enum ending how, uint64_t *state) {
    switch (how) {
    case EXIT: exit(PASSED);
    case QUICK_EXIT: quick_exit(PASSED);
    case ABORT: abort();
    case FAULT: *(volatile int *)8 = 1; break;
    case KILL: kill(getpid(), SIGKILL); break;
    case EXECUTE:
        if (generations > 0)
            execute(state);
        break;
    default: break;
    }
    _exit(PASSED);
}

static void expect(pid_t child, enum ending how) {
    int status = 0;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got != child) {
        complain("wait", got, errno);
        return;
    }
    int told = how == ABORT ? SIGABRT : how == FAULT ? SIGSEGV : how == KILL ? SIGKILL : 0;
    // What a program that takes over does is its own affair; it was ended from outside if it was.
    int outside = WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
    int as_told = told != 0 ? WIFSIGNALED(status) && WTERMSIG(status) == told
                            : WIFEXITED(status) && WEXITSTATUS(status) == PASSED;
    if (how != EXECUTE && !as_told && !outside)
        complain("a child ended otherwise", how, status);
}

// A child may find locks taken by threads that it does not have.
static void try_to_count(int index) {
    if (pthread_mutex_trylock(&locks[index]) != 0)
        return;
    guarded[index]++;
    atomic_fetch_add(&counted[index], 1);
    pthread_mutex_unlock(&locks[index]);
}

static void *child_thread(void *argument) {
    for (int i = 0; i < 20; i++)
        try_to_count(i % LOCKS);
    return argument;
}

static void have_child(uint64_t *state) {
    if (generations <= 0)
        return;
    // Not quick_exit: its lock is libc's own, which may be taken by a thread that the child does not have (in dlclose, say),
    // and waits for it for ever.
    static const enum ending ways[] = {EXIT_AT_ONCE, EXIT_AT_ONCE, ABORT, FAULT, KILL, EXECUTE};
    enum ending how = ways[below(state, sizeof ways / sizeof *ways)];
    uint64_t inherited = next(state);
    pid_t child = below(state, 4) == 0 ? vfork() : fork();
    if (child < 0)
        return;
    if (child > 0) {
        if (below(state, 8) == 0)
            kill(child, SIGKILL);
        expect(child, how);
        return;
    }
    generations--;
    own = 1;
    for (int i = 0; i < 10; i++)
        try_to_count(below(&inherited, LOCKS));
    if (below(&inherited, 2) == 0) {
        pthread_t threads[2];
        int made = 0;
        for (; made < 2 && pthread_create(&threads[made], NULL, child_thread, NULL) == 0; made++) {
        }
        while (made > 0)
            pthread_join(threads[--made], NULL);
    }
    end(how, &inherited);
}

static void start_program(uint64_t *state) {
    if (generations <= 0)
        return;
    char number[32], left[16];
    snprintf(number, sizeof number, "%llu", (unsigned long long)next(state));
    snprintf(left, sizeof left, "%d", generations - 1);
    char *arguments[] = {program, number, left, libraries, NULL};
    pid_t child;
    if (below(state, 3) == 0) {
        if (system("exit 3") != 3 << 8)
            complain("system", 0, 0);
    } else if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0)
        expect(child, EXECUTE);
}

static void step(uint64_t *state) {
    switch (below(state, 24)) {
    case 0: case 1: case 2: case 3: case 4: count_under(below(state, LOCKS)); break;
    case 5: wait_under(below(state, LOCKS)); break;
    case 6: pthread_cond_broadcast(&condition); break;
    case 7: case 8: read_or_write(state); break;
    case 9: case 10: case 11: case 12: churn(state); break;
    case 13: sem_post(&semaphore); break;
    case 14: sem_trywait(&semaphore); break;
    case 15: map_and_unmap(); break;
    case 16: use_library(state); break;
    case 17: jump(state); break;
    case 18: talk(); break;
    case 19: short_thread(state); break;
    case 20: pthread_kill(pthread_self(), SIGUSR1); break;
    case 21: sched_yield(); break;
    case 22: if (below(state, 6) == 0) have_child(state); break;
    default: if (below(state, 12) == 0) start_program(state); break;
    }
}

static void *worker(void *argument) {
    uint64_t state = seed ^ (uint64_t)(uintptr_t)argument * 0x9e3779b97f4a7c15;
    int last_step = (uintptr_t)argument == 1 && ending == EXIT_IN_THREAD ? (int)below(&state, STEPS) : STEPS;
    for (int i = 0; i < last_step; i++)
        step(&state);
    if (last_step < STEPS)
        exit(PASSED);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4)
        return 2;
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    program = arguments[0];
    seed = strtoull(arguments[1], NULL, 10);
    generations = atoi(arguments[2]);
    libraries = arguments[3];
    uint64_t state = seed;
    ending = below(&state, ENDINGS);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sem_init(&semaphore, 0, 1);
    if (below(&state, 2) == 0) {
        struct itimerval often = {{0, 3000}, {0, 3000}};
        setitimer(ITIMER_REAL, &often, NULL);
    }
    pthread_t threads[THREADS];
    int made = 0;
    while (made < THREADS && pthread_create(&threads[made], NULL, worker, (void *)(uintptr_t)(made + 1)) == 0)
        made++;
    if (ending == LEAVE_MAIN)
        pthread_exit(NULL);
    int early = ending >= ABORT && below(&state, 2) == 0;
    for (int i = 0; i < STEPS / 2; i++)
        step(&state);
    if (early)
        end(ending, &state);
    while (made > 0)
        pthread_join(threads[--made], NULL);
    for (int i = 0; i < LOCKS; i++)
        if (guarded[i] != atomic_load(&counted[i]))
            complain("a lost update", guarded[i], atomic_load(&counted[i]));
    for (int i = 0; i < BLOCKS; i++)
        free(atomic_exchange(&shelf[i], NULL));
    if (ending == RETURN || ending == EXIT_IN_THREAD)
        return PASSED;
    end(ending, &state);
}
