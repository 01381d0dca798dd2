// Two threads toggle a bit, which is then as it was before either did.
// With TWIN: they count, so that the reader has to come behind both.
// race: 1 2
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned short state;
int data;

static void step(void) {
    pthread_mutex_lock(&lock);
#ifdef TWIN
    state += 1;
#else
    state ^= 2;
#endif
    pthread_mutex_unlock(&lock);
}

static void *one(void *unused) {
    step();
    return unused;
}

static void *two(void *unused) {
    data = 1; // @1
    step();
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    unsigned short seen = state;
    pthread_mutex_unlock(&lock);
#ifdef TWIN
    if (seen == 2) data = 2; // @2
#else
    if (seen == 0) data = 2; // @2
#endif
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const routines[])(void *) = {one, two, reader};
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
