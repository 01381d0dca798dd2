// Deadlock: two readers wait for the write lock without giving up their reading.
#include <pthread.h>
static pthread_mutex_t readers = PTHREAD_MUTEX_INITIALIZER, writer = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t none = PTHREAD_COND_INITIALIZER;
static int reading;
static void *upgrade(void *p) {
    pthread_mutex_lock(&readers); reading++; pthread_mutex_unlock(&readers);
    pthread_mutex_lock(&writer);
    pthread_mutex_lock(&readers);
    while (reading > 1) pthread_cond_wait(&none, &readers);
    reading--;
    pthread_cond_signal(&none);
    pthread_mutex_unlock(&readers);
    pthread_mutex_unlock(&writer);
    return p;
}
int main(void) { pthread_t x, y; pthread_create(&x, 0, upgrade, 0); pthread_create(&y, 0, upgrade, 0); pthread_join(x, 0);
    pthread_join(y, 0); return 0; }
