// bug: a race in code that runs only if two threads came in one order, and a third between them
// shows: race
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int phase;
static int count;

static void add(void) {
#ifdef FIXED
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
#else
    count++;
#endif
}

static void *task(void *unused) {
    int one = 1;
    if (atomic_compare_exchange_strong(&phase, &one, 2)) add();
    return unused;
}

static void *mover(void *unused) {
    int none = 0;
    if (atomic_compare_exchange_strong(&phase, &none, 1)) {
        if (atomic_load(&phase) == 2) add();
        atomic_store(&phase, 3);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, task, NULL);
    pthread_create(&threads[1], NULL, mover, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
