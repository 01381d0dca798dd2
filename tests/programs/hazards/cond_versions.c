// Condition variables in all their forms.
// Shows: functions whose oldest symbol version has another layout of pthread_cond_t; binding to it crashes.
// True:  each wait ends by the signal it waits for.
// expect: none
#include <pthread.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static int stage;

static void advance(int all) {
    pthread_mutex_lock(&m);
    stage++;
    if (all)
        pthread_cond_broadcast(&changed);
    else
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&m);
}

static void await(int wanted, int timed) {
    struct timespec limit;
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += 3600;
    pthread_mutex_lock(&m);
    while (stage < wanted)
        if (timed)
            pthread_cond_timedwait(&changed, &m, &limit);
        else
            pthread_cond_wait(&changed, &m);
    pthread_mutex_unlock(&m);
}

static void *work(void *unused) {
    await(1, 0);
    advance(1);
    await(3, 1);
    advance(0);
    return NULL;
}

int main(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    advance(0);
    await(2, 1);
    advance(1);
    await(4, 0);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&changed);
    return stage == 4 ? 0 : 1;
}
