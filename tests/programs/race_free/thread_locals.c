// Thread-local variables.
// Shows: one name, as many objects as threads; threads that come later may get the memory of earlier ones.
// True:  no thread uses another's copy.
// expect: none
#include <pthread.h>

static _Thread_local long local = 5;
static _Thread_local char scratch[64];

static void *work(void *argument) {
    long *result = argument;
    for (int i = 0; i < 64; i++)
        scratch[i] = (char)i;
    for (int i = 0; i < 64; i++)
        local += scratch[i];
    *result = local;
    return NULL;
}

int main(void) {
    long results[6];
    for (int round = 0; round < 2; round++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, work, &results[3 * round + i]);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 6; i++)
        if (results[i] != 5 + 63 * 64 / 2)
            return 1;
    return local == 5 ? 0 : 1;
}
