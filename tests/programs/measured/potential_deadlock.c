// AB/BA that hardly ever deadlocks.
// Shows: a deadlock to be predicted from a run in which it did not happen.
// True:  it happens iff both threads have taken their first lock before either takes its second.
// expect: deadlock 13 22
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
    pthread_t one, two;
    pthread_create(&one, NULL, a_then_b, NULL);
    pthread_create(&two, NULL, b_then_a, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return count == 2 ? 0 : 1;
}
