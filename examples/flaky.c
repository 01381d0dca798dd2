// The test of the tutorial (docs/tutorial/flaky-test.md): it passes nearly always, and fails now and then.
//
// The worker says that it is done before it has stored its result.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int done, result;

static void *work(void *unused) {
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    result = 42;
    return NULL;
}

int main(void) {
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    pthread_mutex_lock(&mutex);
    while (!done) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    assert(result == 42);
    pthread_join(worker, NULL);
    puts("passed");
    return 0;
}
