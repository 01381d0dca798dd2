// A thread passes on what it read, and another one reads that: for neither anything depends on it.
// With TWIN: the second one goes on only if something was passed on.
// race: 1 2
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sent, received, total = 1;
int data;

static void *sending(void *unused) {
    data = 1; // @1
    pthread_mutex_lock(&lock);
    sent = 3;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *passing(void *unused) {
    pthread_mutex_lock(&lock);
    received = sent + 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *receiving(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = received;
    pthread_mutex_unlock(&lock);
    total += seen;
#ifdef TWIN
    if (seen != 4) return unused;
#endif
    data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const routines[])(void *) = {sending, passing, receiving};
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return total == 0;
}
