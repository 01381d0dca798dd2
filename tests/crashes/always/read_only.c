// crashes: a worker counts in a table that is constant
// story: at the address is global limits
#include <pthread.h>

static const int limits[4] = {1, 2, 3, 4};

static void *worker(void *at) {
    *(volatile int *)at += 1;
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, (void *)&limits[2]);
    pthread_join(thread, NULL);
    return limits[2];
}
