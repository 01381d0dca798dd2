// What a thread writes at once, two others write by halves.
// With TWIN: one of the halves is another.
// race: 1 2
#include <pthread.h>

#ifdef TWIN
enum { HIGH = 3 };
#else
enum { HIGH = 2 };
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static union {
    unsigned long whole;
    unsigned half[2];
} pair;
int data;

static void *low(void *unused) {
    pthread_mutex_lock(&lock);
    pair.half[0] = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *high(void *unused) {
    pthread_mutex_lock(&lock);
    pair.half[1] = HIGH;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *whole(void *unused) {
    data = 1; // @1
    pthread_mutex_lock(&lock);
    pair.whole = 2ul << 32 | 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    unsigned long seen = pair.whole;
    pthread_mutex_unlock(&lock);
    if (seen == (2ul << 32 | 1)) data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[4];
    void *(*const routines[])(void *) = {low, high, whole, reader};
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
