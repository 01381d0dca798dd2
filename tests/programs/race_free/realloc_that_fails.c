// A realloc that cannot succeed, beside a read of the block.
// Shows: a request for more than there are addresses ends no life: the old block stays as it is.
// True:  nothing. Both threads only read the pointer and the block.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static char *block;
static volatile size_t too_much = PTRDIFF_MAX;

static void *grow(void *unused) {
    return realloc(block, too_much) == NULL ? unused : &block;
}

static void *look(void *unused) {
    return block[3] == 0 ? unused : &block;
}

int main(void) {
    pthread_t grows, looks;
    void *grown, *seen;
    block = calloc(1, 64);
    if (block == NULL || pthread_create(&grows, NULL, grow, NULL) != 0 || pthread_create(&looks, NULL, look, NULL) != 0)
        return 1;
    pthread_join(grows, &grown);
    pthread_join(looks, &seen);
    free(block);
    return grown != NULL || seen != NULL;
}
