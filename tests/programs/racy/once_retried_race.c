// A race beside a once routine that runs twice.
// Shows: a schedule that predicts and forces across an attempt that failed and the one that followed it.
// True:  the routine orders nothing but its own attempts; main writes while `second` may.
// expect: race 26 35 co-enabled
#include <pthread.h>
#include <stddef.h>

static pthread_once_t control = PTHREAD_ONCE_INIT;
static _Thread_local int leaves;
static int attempts, shared;

static void initialise(void) {
    attempts++;
    if (leaves)
        pthread_exit(NULL);
}

static void *first(void *unused) {
    leaves = 1;
    pthread_once(&control, initialise);
    return NULL;
}

static void *second(void *unused) {
    pthread_once(&control, initialise);
    shared = 2;
    return NULL;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, first, NULL);
    pthread_join(a, NULL);
    pthread_create(&b, NULL, second, NULL);
    shared = 1;
    pthread_join(b, NULL);
    return attempts != 2 || shared == 0;
}
