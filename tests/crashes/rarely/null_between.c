// crashes: the session is ended between the look at it and its use
// story: the last pointer that the thread read before is global session
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *session;

static int is_open(void) {
    pthread_mutex_lock(&lock);
    int open = session != NULL;
    pthread_mutex_unlock(&lock);
    return open;
}

static void *user(void *unused) {
    if (is_open()) {
        pthread_mutex_lock(&lock);
        *session += 1;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    static long value;
    pthread_t thread;
    session = &value;
    pthread_create(&thread, NULL, user, NULL);
    pthread_mutex_lock(&lock);
    session = NULL;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
