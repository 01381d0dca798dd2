// Who waits for a condition goes on whichever of two threads made it true.
// With TWIN: only one of them makes it true.
// race: 1 2
#include <pthread.h>

#ifdef TWIN
enum { OTHER = 0 };
#else
enum { OTHER = 1 };
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char ready;
int data;

static void become(char value) {
    pthread_mutex_lock(&lock);
    ready = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *one(void *unused) {
    become(OTHER);
    return unused;
}

static void *two(void *unused) {
    data = 1; // @1
    become(1);
    return unused;
}

static void *waiter(void *unused) {
    pthread_mutex_lock(&lock);
    while (!ready) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const routines[])(void *) = {one, two, waiter};
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
