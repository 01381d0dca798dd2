// shows: a semaphore announces a datum that is written behind the post
// bugs: race
#include <pthread.h>
#include <semaphore.h>

static int data;
static sem_t full;

static void *produce(void *unused) {
    sem_post(&full);
    data = 1;
    return unused;
}

static void *consume(void *unused) {
    sem_wait(&full);
    data++;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&full, 0, 0);
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
