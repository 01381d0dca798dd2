// Two threads store the same floating-point number in memory of the heap, under a lock for readers and writers.
// With TWIN: the numbers differ in the last bit.
// race: 1 2
#include <pthread.h>
#include <stdlib.h>

#ifdef TWIN
#define OTHER 0x1.0000000000001p+0
#else
#define OTHER 1.0
#endif
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static double *level;
int data;

static void measure(double value) {
    pthread_rwlock_wrlock(&lock);
    *level = value;
    pthread_rwlock_unlock(&lock);
}

static void *one(void *unused) {
    measure(OTHER);
    return unused;
}

static void *two(void *unused) {
    data = 1; // @1
    measure(1.0);
    return unused;
}

static void *reader(void *unused) {
    pthread_rwlock_rdlock(&lock);
    double seen = *level;
    pthread_rwlock_unlock(&lock);
    if (seen == 1.0) data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const routines[])(void *) = {one, two, reader};
    level = calloc(4, sizeof *level);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    free(level);
    return 0;
}
