// A mutex that is destroyed behind its last use in most executions, by chance.
// Shows: the closer takes the lock of the count, but does not look whether the worker is done; where it comes behind the worker,
//        happens-before orders the worker's use of the mutex with its end, and no execution of that order shows anything.
// True:  the closer destroys the mutex before the worker takes it, in some schedules.
// expect: use-of-destroyed
#include <pthread.h>

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
    pthread_mutex_lock(&count);
    pthread_mutex_unlock(&count);
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
