// A thread reads a counter and adds it up: nothing that it does depends on what it read.
// With TWIN: it goes on only if the other thread has counted.
// race: 1 2
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter, total = 1;
int data;

static void *counting(void *unused) {
    data = 1; // @1
    pthread_mutex_lock(&lock);
    counter = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *summing(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = counter;
    pthread_mutex_unlock(&lock);
    total += seen;
#ifdef TWIN
    if (seen == 0) return unused;
#endif
    data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[2];
    void *(*const routines[])(void *) = {counting, summing};
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return total == 0;
}
