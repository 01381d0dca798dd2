// A token passed around a ring of semaphores.
// Shows: plain data handed on by sem_post and sem_wait.
// True:  only the thread that has taken the token touches it.
// expect: none
#include <pthread.h>
#include <semaphore.h>

enum { THREADS = 4, LAPS = 10 };
static sem_t turn[THREADS];
static long token;

static void *work(void *argument) {
    int me = *(int *)argument;
    for (int lap = 0; lap < LAPS; lap++) {
        sem_wait(&turn[me]);
        token = token * 3 + me;
        token %= 1000003;
        sem_post(&turn[(me + 1) % THREADS]);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++)
        sem_init(&turn[i], 0, i == 0);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long expected = 0;
    for (int i = 0; i < THREADS * LAPS; i++)
        expected = (expected * 3 + i % THREADS) % 1000003;
    return token == expected ? 0 : 1;
}
