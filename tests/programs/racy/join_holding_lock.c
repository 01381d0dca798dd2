// A join under a lock that the joined thread may still need.
// Shows: a cycle of one lock and one join, to be predicted from a run in which it did not happen.
// True:  it happens iff main takes the lock before `work` has.
// expect: deadlock 11 27
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    count++;
    pthread_mutex_unlock(&m);
    return unused;
}

static void *nothing(void *unused) {
    return unused;
}

int main(void) {
    pthread_t thread, first;
    pthread_create(&thread, NULL, work, NULL);
    pthread_create(&first, NULL, nothing, NULL);
    pthread_join(first, NULL);
    pthread_mutex_lock(&m);
    pthread_join(thread, NULL);
    count++;
    pthread_mutex_unlock(&m);
    return count == 2 ? 0 : 1;
}
