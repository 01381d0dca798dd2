// AB/BA ordered by a join.
// Shows: a lock-order inversion that cannot deadlock.
// True:  the thread that takes b first is created after the thread that takes a first has been joined.
// expect: none
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *a_then_b(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    count++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *b_then_a(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    count++;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, a_then_b, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, b_then_a, NULL);
    pthread_join(thread, NULL);
    return count == 2 ? 0 : 1;
}
