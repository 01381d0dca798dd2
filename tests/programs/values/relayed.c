// A thread passes on what it read: it would have passed on the same had it read what another one wrote.
// With TWIN: the other one wrote something else.
// race: 1 2
#include <pthread.h>

#ifdef TWIN
enum { OTHER = 8 };
#else
enum { OTHER = 9 };
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sent, received;
int data;

static void send(int value) {
    pthread_mutex_lock(&lock);
    sent = value;
    pthread_mutex_unlock(&lock);
}

static void *one(void *unused) {
    send(OTHER);
    return unused;
}

static void *two(void *unused) {
    data = 1; // @1
    send(9);
    return unused;
}

static void *relay(void *unused) {
    pthread_mutex_lock(&lock);
    received = sent;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = received;
    pthread_mutex_unlock(&lock);
    if (seen == 9) data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[4];
    void *(*const routines[])(void *) = {one, two, relay, reader};
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
