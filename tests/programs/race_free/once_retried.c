// A once routine that is left before it is done.
// Shows: pthread_once whose routine ends its thread by pthread_exit and by cancellation: the next caller runs it again.
// True:  one thread at a time is in the routine; each later attempt happens after the one that failed, and every return after
//        the one that did not.
// expect: none
#include <pthread.h>

enum { FAILURES = 2, THREADS = 5 };

static pthread_once_t control = PTHREAD_ONCE_INIT;
static int attempts, value;

static void initialise(void) {
    attempts++;
    if (attempts == 1)
        pthread_exit(NULL);
    if (attempts == FAILURES) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
    }
    value = 9;
}

static void *work(void *unused) {
    pthread_once(&control, initialise);
    return &value;
}

int main(void) {
    pthread_t threads[THREADS];
    int good = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        good += result == &value && value == 9;
    }
    return good == THREADS - FAILURES && attempts == FAILURES + 1 ? 0 : 1;
}
