// Two threads publish the same object, and one of them had still written to it before.
// With TWIN: each publishes an object of its own.
// race: 1 2
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *published;
int first, second;
#ifdef TWIN
#define OTHER (&first)
#else
#define OTHER (&second)
#endif

static void publish(int *object) {
    pthread_mutex_lock(&lock);
    published = object;
    pthread_mutex_unlock(&lock);
}

static void *one(void *unused) {
    publish(OTHER);
    return unused;
}

static void *two(void *unused) {
    second = 1; // @1
    publish(&second);
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    int *seen = published;
    pthread_mutex_unlock(&lock);
    if (seen == &second) *seen = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const routines[])(void *) = {one, two, reader};
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
