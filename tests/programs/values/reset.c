// A thread writes what was there from the beginning: who reads it need not have waited for that.
// With TWIN: it writes something else, which the reader waits for.
// race: 1 2
#include <pthread.h>

#ifdef TWIN
enum { INITIAL = 7 };
#else
enum { INITIAL = 5 };
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long level = INITIAL;
long data;

static void *writer(void *unused) {
    data = 1; // @1
    pthread_mutex_lock(&lock);
    level = 5;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    long seen = level;
    pthread_mutex_unlock(&lock);
    if (seen == 5) data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[2];
    void *(*const routines[])(void *) = {writer, reader};
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
