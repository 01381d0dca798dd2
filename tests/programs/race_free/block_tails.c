// Two threads use all of their blocks, as malloc_usable_size tells, and each may get the other's.
// Shows: a block that is longer than what was asked for, in memory that belonged to another block before.
// True:  the blocks never live at the same time, and the allocator orders them.
// expect: none
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// Beyond what threads keep for themselves, and of the same length inside the allocator.
static const size_t asked[2] = {1496, 1484};

static void *use(void *argument) {
    volatile char *block = malloc(asked[(long)argument]);
    size_t bytes = malloc_usable_size((void *)block);
    for (size_t at = bytes - 16; at < bytes; at++)
        block[at] = 1;
    free((void *)block);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use, (void *)(i % 2));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
