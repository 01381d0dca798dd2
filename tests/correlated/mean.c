// bug: a sample is counted in one critical section and added in the next; the mean between is of a sample that is not there
// shows: atomicity-violation
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum = 40, count = 2;

static void sample(long value) {
    pthread_mutex_lock(&lock);
    count++;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    sum += value;
    pthread_mutex_unlock(&lock);
}

static long mean(void) {
    pthread_mutex_lock(&lock);
    long result = sum / count;
    pthread_mutex_unlock(&lock);
    return result;
}

static void *sampler(void *unused) {
    sample(20);
    return unused;
}

static void *controller(void *unused) {
    // All samples are 20.
    assert(mean() == 20);
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, sampler, NULL);
    pthread_create(&other, NULL, controller, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
