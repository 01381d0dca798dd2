// Lost wake-up: the flag is looked at before the mutex is taken.
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static _Atomic int ready;
static void *wait(void *p) {
    if (!ready) { pthread_mutex_lock(&m); pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m); }
    return p;
}
static void *wake(void *p) { ready = 1; pthread_mutex_lock(&m); pthread_cond_signal(&c); pthread_mutex_unlock(&m); return p; }
int main(void) { pthread_t x, y; pthread_create(&x, 0, wait, 0); pthread_create(&y, 0, wake, 0); pthread_join(x, 0);
    pthread_join(y, 0); return 0; }
