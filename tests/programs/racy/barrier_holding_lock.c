// A barrier under a lock that another thread may need on its way to it.
// Shows: a cycle of a lock and a barrier, to be predicted from a run in which it did not happen.
// True:  it happens iff `late` takes the lock before `early` has.
// expect: deadlock 12 21 32
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static int count;

static void *early(void *unused) {
    pthread_mutex_lock(&m);
    count++;
    pthread_mutex_unlock(&m);
    pthread_barrier_wait(&both);
    return unused;
}

static void *late(void *unused) {
    pthread_mutex_lock(&m);
    pthread_barrier_wait(&both);
    count++;
    pthread_mutex_unlock(&m);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&threads[0], NULL, early, NULL);
    pthread_create(&threads[1], NULL, late, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return count == 2 ? 0 : 1;
}
