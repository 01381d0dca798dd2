// A mutex that is destroyed once the thread that uses it has counted itself.
// Shows: another order of the sections of the count would have the mutex destroyed too early; but the closer reads the count.
// True:  the closer goes on only behind the worker's last use.
// expect: none
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t work = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t count = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *worker(void *unused) {
    pthread_mutex_lock(&work);
    pthread_mutex_unlock(&work);
    pthread_mutex_lock(&count);
    done++;
    pthread_mutex_unlock(&count);
    return unused;
}

static void *closer(void *unused) {
    for (int is_done = 0; !is_done;) {
        pthread_mutex_lock(&count);
        is_done = done;
        pthread_mutex_unlock(&count);
        if (!is_done)
            sched_yield();
    }
    pthread_mutex_destroy(&work);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, worker, 0);
    pthread_create(&threads[1], 0, closer, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
