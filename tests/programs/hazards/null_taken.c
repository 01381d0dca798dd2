// A pointer that another thread takes away.
// Shows: a crash in every run: the pointer is null by then.
// True:  main had set it to null; the thread follows it 8 bytes further.
// expect: failure crashed
// tells: the last pointer that the thread read before is global shared (8 bytes) at user (null_taken.c:17)
// tells: the main thread at main (null_taken.c:25) had written it last
#include <pthread.h>
#include <stddef.h>

struct pair { long first, second; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pair *shared;

static void *user(void *unused) {
    pthread_mutex_lock(&lock);
    shared->second += 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    static struct pair pair;
    shared = &pair;
    shared = NULL;
    pthread_t thread;
    pthread_create(&thread, NULL, user, NULL);
    pthread_join(thread, NULL);
    return 1;
}
