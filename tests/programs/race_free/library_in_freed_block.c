// A library where freed memory was.
// Shows: a block that is a mapping of its own is freed, and pthread_exit makes the C library load libgcc there.
// True:  what the unwinder reads is libgcc's, not the block's.
// expect: none
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 200000 }; // more than malloc takes from its heap, and than libgcc needs

static char *volatile block;
static void *volatile small;
static pthread_barrier_t barrier;

static void *leaves(void *unused) {
    // The thread's own heap lies elsewhere.
    small = malloc(1);
    free(small);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    pthread_exit(unused);
}

int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, leaves, NULL);
    pthread_barrier_wait(&barrier);
    block = malloc(BYTES);
    memset(block, 1, BYTES);
    free(block);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
