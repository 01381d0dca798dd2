// A signal a millisecond.
// Shows: handlers that interrupt a recording hook anywhere, in any thread, and make accesses themselves.
// True:  the handler uses a lock-free atomic only; the storm lasts until 50 signals have come.
// expect: none
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

static atomic_int signals;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long counter, cells[64];

static void count(int number) {
    atomic_fetch_add(&signals, 1);
}

static void *work(void *unused) {
    while (atomic_load(&signals) < 50) {
        pthread_mutex_lock(&m);
        counter++;
        for (int i = 0; i < 64; i++)
            cells[i]++;
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &off, NULL);
    for (int i = 0; i < 64; i++)
        if (cells[i] != counter)
            return 1;
    return 0;
}
