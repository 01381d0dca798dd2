// Signals to threads that have just been created, and may not have begun.
// Shows: a handler that runs before anything else does in its thread, with an access of its own.
// True:  the handler uses lock-free atomics only; each thread takes its signal before it is joined.
// expect: none
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

enum { THREADS = 8 };

static atomic_int handled, seen;

static void count(int number) {
    (void)number;
    atomic_fetch_add(&handled, 1);
}

static void *work(void *before) {
    atomic_fetch_add(&seen, atomic_load(&handled));
    // Its own signal has come, or comes now.
    while (atomic_load(&handled) == *(int *)before)
        sched_yield();
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        int before = i;
        pthread_create(&thread, NULL, work, &before);
        pthread_kill(thread, SIGUSR1);
        pthread_join(thread, NULL);
    }
    return atomic_load(&handled) == THREADS ? 0 : 1;
}
