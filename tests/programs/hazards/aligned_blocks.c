// Aligned allocation.
// Shows: aligned_alloc, memalign, posix_memalign, valloc, malloc_usable_size.
// True:  alignment and lifetime are each block's own.
// expect: none
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int use(void *block, size_t alignment, size_t size) {
    int wrong = block == NULL || (uintptr_t)block % alignment != 0 || malloc_usable_size(block) < size;
    if (!wrong)
        memset(block, 0xa5, size);
    free(block);
    return wrong;
}

static void *work(void *argument) {
    int *wrong = argument;
    for (size_t alignment = 16; alignment <= 4096; alignment *= 4) {
        *wrong += use(aligned_alloc(alignment, 2 * alignment), alignment, 2 * alignment);
        *wrong += use(memalign(alignment, 100), alignment, 100);
        void *block = NULL;
        *wrong += posix_memalign(&block, alignment, 77) != 0;
        *wrong += use(block, alignment, 77);
    }
    *wrong += use(valloc(10), 4096, 10);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int wrong[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &wrong[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return wrong[0] + wrong[1] ? 1 : 0;
}
