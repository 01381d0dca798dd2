// A realloc and a mremap that the process may not have, beside reads of what they were to move.
// Shows: where the kernel refuses (RLIMIT_AS), the block and the mapping stay as they are: no life ends.
// True:  nothing. Both threads only read the pointers and what they point to.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { SMALL = 1 << 16 };
static const size_t TOO_MUCH = (size_t)2 << 30;
static char *block, *mapped;

static void *grow(void *unused) {
    int refused = realloc(block, TOO_MUCH) == NULL && mremap(mapped, SMALL, TOO_MUCH, MREMAP_MAYMOVE) == MAP_FAILED;
    return refused ? unused : &block;
}

static void *look(void *unused) {
    return block[3] == 0 && mapped[5] == 0 ? unused : &block;
}

int main(void) {
    pthread_t grows, looks;
    void *grown, *seen;
    /* Less than what is asked for, and more than anybody else needs. */
    struct rlimit limit;
    size_t pages = 0;
    FILE *sizes = fopen("/proc/self/statm", "r");
    if (sizes == NULL || fscanf(sizes, "%zu", &pages) != 1 || fclose(sizes) != 0 || getrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    limit.rlim_cur = pages * 4096 + TOO_MUCH / 2;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    block = calloc(1, SMALL);
    mapped = mmap(NULL, SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == NULL || mapped == MAP_FAILED)
        return 1;
    if (pthread_create(&grows, NULL, grow, NULL) != 0 || pthread_create(&looks, NULL, look, NULL) != 0)
        return 1;
    pthread_join(grows, &grown);
    pthread_join(looks, &seen);
    munmap(mapped, SMALL);
    free(block);
    return grown != NULL || seen != NULL;
}
