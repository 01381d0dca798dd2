// A pointer that another order of the critical sections leaves null.
// Shows: the lock orders both accesses, so that there is no data race; a thread that comes first follows a null pointer.
// True:  nothing makes the thread come behind main.
// expect: failure crashed
// tells: the last pointer that the thread read before is global settings (8 bytes) at use (null_left.c:18)
// tells: critical order: [
#include <pthread.h>
#include <stdio.h>

struct settings { long first, size; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings *settings;
static long seen;

static void *use(void *unused) {
    pthread_mutex_lock(&lock);
    seen = settings->size;
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
    printf("%ld\n", seen);
    return 0;
}
