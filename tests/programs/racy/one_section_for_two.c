// Two threads under one lock that their creator holds for both.
// Shows: a critical section that spans threads is no gate between those that it covers.
// True:  `forwards` and `backwards` run in parallel; it happens iff both have their first lock before either takes its second.
// expect: deadlock 13 22
#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static int count;
static void *forwards(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    count++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *backwards(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    count++;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}

int main(void) {
    pthread_t one, two;
    pthread_mutex_lock(&gate);
    pthread_create(&one, NULL, forwards, NULL);
    pthread_create(&two, NULL, backwards, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    pthread_mutex_unlock(&gate);
    return count == 2 ? 0 : 1;
}
