// libuv's own tests of threads, one after the other in one process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TESTS(DO)                                                                                               \
    DO(signal_multiple_loops) DO(thread_create) DO(thread_equal) DO(thread_local_storage) DO(thread_stack_size) \
    DO(thread_stack_size_explicit) DO(thread_mutex) DO(thread_mutex_recursive) DO(thread_rwlock)                \
    DO(thread_rwlock_trylock) DO(barrier_1) DO(barrier_2) DO(barrier_3) DO(barrier_serial_thread)               \
    DO(barrier_serial_thread_single) DO(condvar_1) DO(condvar_2) DO(condvar_3) DO(condvar_4) DO(condvar_5)      \
    DO(semaphore_1) DO(semaphore_2) DO(semaphore_3) DO(threadpool_queue_work_einval)                            \
    DO(threadpool_queue_work_simple) DO(threadpool_multiple_event_loops) DO(threadpool_cancel_getaddrinfo)      \
    DO(threadpool_cancel_getnameinfo) DO(threadpool_cancel_random) DO(threadpool_cancel_work)                   \
    DO(threadpool_cancel_fs) DO(threadpool_cancel_single) DO(async) DO(random_async) DO(random_sync)

#define DECLARE(name) int run_test_##name(void);
TESTS(DECLARE)

#define ENTRY(name) {#name, run_test_##name},
static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {TESTS(ENTRY)};

int main(int count, char **arguments) {
    FILE *output = fopen("output", "w");
    int failed = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (count > 1 && strcmp(arguments[1], tests[i].name) != 0)
            continue;
        int result = tests[i].run();
        failed |= result;
        fprintf(output, "%s %d\n", tests[i].name, result);
        fflush(output);
    }
    fclose(output);
    return failed != 0;
}
