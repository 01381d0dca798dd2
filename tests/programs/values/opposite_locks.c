// Who sees that the work is done takes two locks, in the order opposite to that of one of the two threads that say so.
// With TWIN: the other one says something else.
// deadlock
#include <pthread.h>

#ifdef TWIN
enum { OTHER = 2 };
#else
enum { OTHER = 1 };
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void say(int value) {
    pthread_mutex_lock(&lock);
    done = value;
    pthread_mutex_unlock(&lock);
}

static void *one(void *unused) {
    say(OTHER);
    return unused;
}

static void *two(void *unused) {
    both(&left, &right);
    say(1);
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = done;
    pthread_mutex_unlock(&lock);
    if (seen == 1) both(&right, &left);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const routines[])(void *) = {one, two, reader};
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
