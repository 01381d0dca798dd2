// Thread-specific destructors that lock, allocate and set their key again.
// Shows: synchronisation after a thread's start routine has returned, over several rounds of destructors.
// True:  the total is used with the lock held; each thread's destructor runs three times.
// expect: none
#include <pthread.h>
#include <stdlib.h>

static pthread_key_t key;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void destroy(void *argument) {
    int *rounds_left = argument;
    pthread_mutex_lock(&m);
    total++;
    pthread_mutex_unlock(&m);
    if (*rounds_left > 0) {
        int *again = malloc(sizeof *again);
        *again = *rounds_left - 1;
        pthread_setspecific(key, again);
    }
    free(rounds_left);
}

static void *work(void *unused) {
    int *rounds_left = malloc(sizeof *rounds_left);
    *rounds_left = 2;
    pthread_setspecific(key, rounds_left);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return total == 9 ? 0 : 1;
}
