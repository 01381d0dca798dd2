// A crash in a thread.
// Shows: a program that ends by SIGSEGV; the recording up to there is wanted.
// True:  the null pointer is written by the second thread, after main has counted.
// expect: failure crashed
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static int *volatile nowhere;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    counter++;
    *nowhere = counter;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_mutex_lock(&m);
    counter++;
    pthread_mutex_unlock(&m);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 1;
}
