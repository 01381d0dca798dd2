// AB/BA under a common gate lock.
// Shows: a lock-order inversion that cannot deadlock.
// True:  both threads hold `gate` whenever they hold the first of the two locks.
// expect: none
#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *a_then_b(void *unused) {
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    count++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&gate);
    return NULL;
}

static void *b_then_a(void *unused) {
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    count++;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&gate);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, a_then_b, NULL);
    pthread_create(&two, NULL, b_then_a, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return count == 2 ? 0 : 1;
}
