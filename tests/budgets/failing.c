// An assertion that fails where main is late, and a wrong exit code where the second thread is.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int first, second;

static void *one(void *unused) {
    atomic_store(&first, 1);
    return NULL;
}

static void *two(void *unused) {
    atomic_store(&second, 1);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, two, NULL);
    assert(!atomic_load(&first) || atomic_load(&second));
    int seen = atomic_load(&second);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return seen ? 0 : 3;
}
