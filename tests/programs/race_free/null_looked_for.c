// A pointer that some orders of the critical sections leave null.
// Shows: the twin of racy/null_left.c: the thread looks before it follows the pointer.
// True:  it follows what is not null.
// expect: none
#include <pthread.h>
#include <stdio.h>

struct settings { long first, size; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings *settings;
static long seen;

static void *use(void *unused) {
    pthread_mutex_lock(&lock);
    if (settings != NULL) {
        seen = settings->size;
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    static struct settings defaults = {0, 16};
    pthread_t thread;
    pthread_create(&thread, NULL, use, NULL);
    pthread_mutex_lock(&lock);
    settings = &defaults;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
