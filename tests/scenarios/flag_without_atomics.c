// shows: a flag and what it announces are plain variables
// bugs: race
#include <pthread.h>

static int data;
static volatile int ready;

static void *produce(void *unused) {
    data = 1;
    ready = 1;
    return unused;
}

static void *consume(void *unused) {
    if (ready) data++;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
