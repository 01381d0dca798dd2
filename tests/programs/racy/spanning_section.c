// A deadlock through a lock that another thread holds.
// Shows: a critical section that spans threads. No two threads take two locks in opposite orders.
// True:  it happens iff `other` has `detail`, and main `whole`, before either `part` takes `detail` or `other` takes `whole`.
// expect: deadlock 13 21 32
#include <pthread.h>

static pthread_mutex_t whole = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t detail = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *part(void *unused) {
    (void)unused;
    pthread_mutex_lock(&detail);
    count++;
    pthread_mutex_unlock(&detail);
    return NULL;
}

static void *other(void *unused) {
    pthread_mutex_lock(&detail);
    pthread_mutex_lock(&whole);
    count++;
    pthread_mutex_unlock(&whole);
    pthread_mutex_unlock(&detail);
    return unused;
}

static void in_parts(void) {
    pthread_t thread;
    pthread_mutex_lock(&whole);
    pthread_create(&thread, NULL, part, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&whole);
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    in_parts();
    pthread_join(thread, NULL);
    return count == 2 ? 0 : 1;
}
