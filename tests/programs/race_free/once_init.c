// pthread_once.
// Shows: initialisation by whichever thread comes first, read by all without a lock.
// True:  the return of pthread_once orders the initialiser before every caller.
// expect: none
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int table[16], calls;

static void fill(void) {
    calls++;
    for (int i = 0; i < 16; i++)
        table[i] = i * i;
}

static void *work(void *argument) {
    pthread_once(&once, fill);
    int *sum = argument;
    for (int i = 0; i < 16; i++)
        *sum += table[i];
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int sums[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return calls == 1 && sums[0] == 1240 && sums[1] == 1240 && sums[2] == 1240 ? 0 : 1;
}
