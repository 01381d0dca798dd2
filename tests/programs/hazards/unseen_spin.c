// A loop that looks at a flag where no instrumentation sees it, until another thread has set that.
// Shows: a thread without any event loses its turn, and comes back.
// True:  the flag is read and written by inline assembly only.
// expect: none
#include <pthread.h>
#include <stddef.h>

static int flag;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int seen;

static void *look(void *unused) {
    int now;
    do
        __asm__ volatile("pause; movl %1, %0" : "=r"(now) : "m"(flag));
    while (!now);
    pthread_mutex_lock(&mutex);
    seen = 1;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, look, NULL);
    // The other thread may look first.
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    __asm__ volatile("movl $1, %0" : "=m"(flag));
    pthread_join(thread, NULL);
    return seen ? 0 : 1;
}
