// shows: a datum is handed there and back by two semaphores
// bugs: none
#include <pthread.h>
#include <semaphore.h>

static int data;
static sem_t there, back;

static void *one(void *unused) {
    data = 1;
    sem_post(&there);
    sem_wait(&back);
    data++;
    return unused;
}

static void *two(void *unused) {
    sem_wait(&there);
    data++;
    sem_post(&back);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&there, 0, 0);
    sem_init(&back, 0, 0);
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, two, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return data == 3 ? 0 : 1;
}
