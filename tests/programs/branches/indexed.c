// A thread reads a number and keeps it.
// With TWIN: it uses the number as an index: where it writes next depends on it.
// race: 1 2
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int place, total = 1;
int data[8];

static void *choosing(void *unused) {
    data[5] = 1; // @1
    pthread_mutex_lock(&lock);
    place = 5;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *using(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = place;
    pthread_mutex_unlock(&lock);
#ifdef TWIN
    data[seen] = 2; // @2
#else
    total += seen;
    data[5] = 2; // @2
#endif
    return unused;
}

int main(void) {
    pthread_t threads[2];
    void *(*const routines[])(void *) = {choosing, using};
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return total == 0;
}
