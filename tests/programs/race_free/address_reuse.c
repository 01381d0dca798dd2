// Heap blocks that get the address of earlier ones.
// Shows: accesses of different threads to one address that are accesses to different objects.
// True:  a block is used by the thread that allocated it only.
// expect: none
#include <pthread.h>
#include <stdlib.h>

static void *work(void *argument) {
    int *sum = argument;
    for (int i = 0; i < 50; i++) {
        int *block = malloc(24);
        block[0] = i;
        block[5] = 1;
        *sum += block[0] * block[5];
        free(block);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    int sums[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return sums[0] == 1225 && sums[1] == 1225 && sums[2] == 1225 && sums[3] == 1225 ? 0 : 1;
}
