// 100 threads at once.
// Shows: that no small limit on threads exists.
// True:  a barrier makes all of them live at the same time.
// expect: none
#include <pthread.h>

enum { THREADS = 100 };
static pthread_barrier_t all_here;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *work(void *unused) {
    pthread_barrier_wait(&all_here);
    pthread_mutex_lock(&m);
    counter++;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_here, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return counter == THREADS ? 0 : 1;
}
