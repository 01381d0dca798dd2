// mmap, mremap and munmap.
// Shows: memory whose address may come back as another mapping, also another thread's.
// True:  each thread uses its own mappings. A detector that misses mremap reports a race.
// expect: none
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static void *work(void *argument) {
    int *wrong = argument;
    for (int i = 0; i < 20; i++) {
        size_t size = 4096 * (size_t)(i % 4 + 1);
        char *mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping == MAP_FAILED) {
            ++*wrong;
            break;
        }
        *wrong += mapping[size - 1] != 0;
        memset(mapping, i + 1, size);
        mapping = mremap(mapping, size, size + 8192, MREMAP_MAYMOVE);
        if (mapping == MAP_FAILED) {
            ++*wrong;
            break;
        }
        *wrong += mapping[size - 1] != i + 1 || mapping[size] != 0;
        munmap(mapping, size + 8192);
    }
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
