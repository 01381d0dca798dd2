// A thread that waits for signals.
// Shows: blocked signals taken by sigwait.
// True:  SIGUSR1 and SIGUSR2 are blocked before the thread is created; the data is handed over by the join.
// expect: none
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static sigset_t wanted;

static void *take(void *argument) {
    int *seen = argument;
    while (*seen < 2) {
        int number;
        if (sigwait(&wanted, &number) != 0)
            break;
        if (number == SIGUSR1 || number == SIGUSR2)
            ++*seen;
    }
    return NULL;
}

int main(void) {
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    sigaddset(&wanted, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &wanted, NULL);
    pthread_t thread;
    int seen = 0;
    pthread_create(&thread, NULL, take, &seen);
    kill(getpid(), SIGUSR1);
    pthread_kill(thread, SIGUSR2);
    pthread_join(thread, NULL);
    return seen == 2 ? 0 : 1;
}
