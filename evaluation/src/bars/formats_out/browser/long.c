// A million events of a lock, and a race behind them.
#include <pthread.h>
#include <stdio.h>

enum { TIMES = 260000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long guarded, unguarded;

static void *work(void *unused) {
    for (int i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&lock);
        guarded++;
        pthread_mutex_unlock(&lock);
    }
    unguarded++;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%ld %ld\n", guarded, unguarded);
    return 0;
}
