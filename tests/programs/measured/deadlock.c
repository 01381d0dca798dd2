// AB/BA that deadlocks under every schedule.
// Shows: a deadlock that is there, not predicted: a barrier makes both threads hold one lock before they ask for the other.
// True:  the program never ends.
// expect: deadlock 14 23
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;

static void *a_then_b(void *unused) {
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both_hold_one);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *b_then_a(void *unused) {
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both_hold_one);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_barrier_init(&both_hold_one, NULL, 2);
    pthread_create(&one, NULL, a_then_b, NULL);
    pthread_create(&two, NULL, b_then_a, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 1;
}
