// Condition variables, sleeps and a race behind them: what executions take is mostly virtual time.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, late;

static void *consume(void *unused) {
    pthread_mutex_lock(&m);
    while (!ready) {
        pthread_cond_wait(&c, &m);
    }
    pthread_mutex_unlock(&m);
    usleep(50000);
    late++;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, consume, NULL);
    }
    usleep(20000);
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    late++;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
