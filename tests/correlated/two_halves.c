// bug: both threads set a range's ends in two critical sections, so that the range may have one end of each
// shows: atomicity-violation
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int first, last;

static void set_first(int value) {
    pthread_mutex_lock(&lock);
    first = value;
    pthread_mutex_unlock(&lock);
}

static void set_last(int value) {
    pthread_mutex_lock(&lock);
    last = value;
    pthread_mutex_unlock(&lock);
}

#ifdef FIXED
static pthread_mutex_t whole = PTHREAD_MUTEX_INITIALIZER;
#endif

static void set_range(int from, int to) {
#ifdef FIXED
    pthread_mutex_lock(&whole);
#endif
    set_first(from);
    set_last(to);
#ifdef FIXED
    pthread_mutex_unlock(&whole);
#endif
}

static void *select_low(void *unused) {
    set_range(1, 10);
    return unused;
}

static void *select_high(void *unused) {
    set_range(101, 110);
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, select_low, NULL);
    pthread_create(&other, NULL, select_high, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return last - first == 9 ? 0 : 1;
}
