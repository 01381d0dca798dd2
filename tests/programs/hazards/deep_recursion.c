// Recursion of 20 000 calls in each of two threads.
// Shows: call stacks deeper than any fixed shadow stack.
// True:  both threads have a stack of 64 MiB; the count is kept under a lock.
// expect: none
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long visits;

__attribute__((noinline)) static long descend(volatile long *previous, int depth) {
    volatile long mine = *previous + 1;
    if (depth == 0) {
        pthread_mutex_lock(&m);
        visits++;
        pthread_mutex_unlock(&m);
        return mine;
    }
    return descend(&mine, depth - 1) + (mine & 0);
}

static void *work(void *argument) {
    volatile long start = 0;
    *(long *)argument = descend(&start, 20000);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    long depths[2] = {0, 0};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], &attributes, work, &depths[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return visits == 2 && depths[0] == 20001 && depths[1] == 20001 ? 0 : 1;
}
