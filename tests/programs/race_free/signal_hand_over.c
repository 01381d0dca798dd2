// Data handed over by signals.
// Shows: signals that are sent to a thread or the process, and taken by waiting for them, from a descriptor, or by a handler.
// True:  the second access is behind the arrival of the signal that the first thread sent after its own access.
// expect: none
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { WAITED, INFORMED, TIMED, QUEUED, TO_PROCESS, NAMED, FROM_DESCRIPTOR, HANDLED, CASES };

static int data[CASES];
static int descriptor;
static pthread_t taker;
static atomic_int taker_id;

static void handler(int signal) {
    (void)signal;
    data[HANDLED] += 1;
}

static void give(int way) {
    union sigval value = {.sival_int = 1};
    switch (way) {
    case QUEUED: sigqueue(getpid(), SIGUSR1, value); break;
    case TO_PROCESS: case FROM_DESCRIPTOR: kill(getpid(), SIGUSR1); break;
    case NAMED: tgkill(getpid(), atomic_load_explicit(&taker_id, memory_order_relaxed), SIGUSR1); break;
    case HANDLED: pthread_kill(taker, SIGUSR2); break;
    default: pthread_kill(taker, SIGUSR1); break;
    }
}

static void take(int way) {
    sigset_t set;
    struct signalfd_siginfo information;
    struct timespec long_time = {1000, 0};
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    switch (way) {
    case INFORMED: sigwaitinfo(&set, NULL); break;
    case TIMED: sigtimedwait(&set, NULL, &long_time); break;
    case FROM_DESCRIPTOR: (void)!read(descriptor, &information, sizeof information); break;
    case HANDLED:
        sigfillset(&set);
        sigdelset(&set, SIGUSR2);
        sigsuspend(&set);
        break;
    default: sigwait(&set, &signal); break;
    }
}

static void *first(void *way) {
    data[(long)way] = 1;
    give((long)way);
    return NULL;
}

static void *second(void *way) {
    take((long)way);
    if ((long)way != HANDLED)
        data[(long)way] += 1;
    return NULL;
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR2, handler);
    sigdelset(&set, SIGUSR2);
    descriptor = signalfd(-1, &set, 0);
    int sum = 0;
    for (long way = 0; way < CASES; way++) {
        pthread_t other;
        if (way == NAMED) {
            // The initial thread takes it.
            atomic_store_explicit(&taker_id, gettid(), memory_order_relaxed);
            pthread_create(&other, NULL, first, (void *)way);
            second((void *)way);
        } else {
            pthread_create(&taker, NULL, second, (void *)way);
            pthread_create(&other, NULL, first, (void *)way);
            pthread_join(taker, NULL);
        }
        pthread_join(other, NULL);
        sum += data[way];
    }
    return sum == 2 * CASES ? 0 : 1;
}
