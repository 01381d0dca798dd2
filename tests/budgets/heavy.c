// Millions of accesses and tens of thousands of critical sections: loading and analysis take longer than executions.
#include <pthread.h>

enum { THREADS = 6, ROUNDS = 20000, CELLS = 64 };
static pthread_mutex_t locks[8];
static int cells[CELLS][16];
static int unprotected[32];

static void *work(void *seed) {
    unsigned state = (unsigned)(long)seed * 2654435761u + 1;
    for (int round = 0; round < ROUNDS; round++) {
        state = state * 1664525u + 1013904223u;
        unsigned one = state >> 28 & 7, other = state >> 24 & 7;
        pthread_mutex_t *first = &locks[one < other ? one : other], *second = &locks[one < other ? other : one];
        pthread_mutex_lock(first);
        if (first != second) {
            pthread_mutex_lock(second);
        }
        for (int i = 0; i < 16; i++) {
            cells[one * 8 + other][i]++;
        }
        if (first != second) {
            pthread_mutex_unlock(second);
        }
        pthread_mutex_unlock(first);
        unprotected[state >> 16 & 31]++;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < 8; i++) {
        pthread_mutex_init(&locks[i], NULL);
    }
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
