// Threads that would never end by themselves.
// Shows: the end of the process waits until they repeat themselves, one sleeping, one spinning, and not for ever; one is blocked.
// True:  the count of rounds is changed by both without a lock.
// expect: race 19 26 co-enabled
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile int stop;
static int shared, rounds;

static void *sleep_and_work(void *unused) {
    for (;;) {
        pthread_mutex_lock(&mutex);
        shared++;
        pthread_mutex_unlock(&mutex);
        rounds++;
        usleep(1000);
    }
    return NULL;
}

static void *spin(void *unused) {
    rounds++;
    while (!stop) {
    }
    return NULL;
}

static void *wait_for_nothing(void *unused) {
    pthread_mutex_lock(&mutex);
    while (!stop)
        pthread_cond_wait(&never, &mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void) {
    pthread_t one, two, three;
    pthread_create(&one, NULL, sleep_and_work, NULL);
    pthread_create(&two, NULL, spin, NULL);
    pthread_create(&three, NULL, wait_for_nothing, NULL);
    return 0;
}
