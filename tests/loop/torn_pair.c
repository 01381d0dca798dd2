// bug: the two ends of a range are set in two critical sections; who reads both in one sees a range that never was
// shows: atomicity-violation
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int first = 10, last = 20, is_wrong;

static void *move(void *unused) {
    pthread_mutex_lock(&lock);
    first = 30;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    last = 40;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *verify(void *unused) {
    pthread_mutex_lock(&lock);
    int length = last - first;
    pthread_mutex_unlock(&lock);
    is_wrong = length != 10;
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, move, NULL);
    pthread_create(&other, NULL, verify, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return is_wrong;
}
