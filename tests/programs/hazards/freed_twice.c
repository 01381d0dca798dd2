// Two threads believe that a block is theirs to free.
// Shows: an abort in every run: libc sees that the block, too large for the lists of small ones, is free already.
// True:  the thread frees the block, main frees it once more.
// expect: failure crashed
// expect: use-after-free
// tells: it frees heap block of 5000 bytes allocated at main (freed_twice.c:21) once more
// tells: it was freed before by thread 0 at end (freed_twice.c:15)
#include <pthread.h>
#include <stdlib.h>

static void *block;

static void *end(void *unused) {
    (void)unused;
    free(block);
    return NULL;
}

int main(void) {
    pthread_t thread;
    block = malloc(5000);
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
    free(block);
    return 1;
}
