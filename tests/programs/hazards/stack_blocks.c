// alloca and arrays of variable length.
// Shows: stack memory of changing shape, of threads whose stacks are reused.
// True:  no thread uses another's stack.
// expect: none
#include <alloca.h>
#include <pthread.h>
#include <string.h>

static long fill(int size) {
    unsigned char *block = alloca((size_t)size);
    memset(block, 1, (size_t)size);
    int counts[size];
    long sum = 0;
    for (int i = 0; i < size; i++)
        counts[i] = block[i] + i;
    for (int i = 0; i < size; i++)
        sum += counts[i];
    return sum;
}

static void *work(void *argument) {
    int *wrong = argument;
    for (int size = 1; size < 200; size += 20)
        *wrong += fill(size) != size + (long)size * (size - 1) / 2;
    return NULL;
}

int main(void) {
    int wrong[4] = {0, 0, 0, 0};
    for (int round = 0; round < 2; round++) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, work, &wrong[2 * round + i]);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    }
    return wrong[0] + wrong[1] + wrong[2] + wrong[3] ? 1 : 0;
}
