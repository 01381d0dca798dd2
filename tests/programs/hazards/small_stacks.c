// Threads with the smallest stacks that the C library allows.
// Shows: recordings whose next part is begun, and races that are found, on a stack of 16 KiB.
// True:  every access is under the lock.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, CELLS = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cells[CELLS];

static void *work(void *unused) {
    for (int cell = 0; cell < CELLS; cell++) {
        pthread_mutex_lock(&lock);
        cells[cell]++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_attr_t small;
    size_t bytes = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    for (int thread = 0; thread < THREADS; thread++) {
        if (pthread_create(&threads[thread], &small, work, NULL) != 0) return 2;
    }
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    // The program's own attributes are as it left them.
    pthread_attr_getstacksize(&small, &bytes);
    long sum = 0;
    for (int cell = 0; cell < CELLS; cell++) sum += cells[cell];
    printf("%ld\n", sum);
    return bytes == PTHREAD_STACK_MIN && sum == (long)THREADS * CELLS ? 0 : 1;
}
