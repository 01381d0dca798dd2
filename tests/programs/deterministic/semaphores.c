// A counting semaphore that admits two of four.
// Shows: sem_wait, sem_trywait, sem_getvalue.
// True:  the semaphore limits; a mutex protects.
// expect: none
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t seats;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int inside, most, refused;

static void *visit(void *argument) {
    for (int i = 0; i < 5; i++) {
        if (sem_trywait(&seats) != 0) {
            pthread_mutex_lock(&m);
            refused++;
            pthread_mutex_unlock(&m);
            sem_wait(&seats);
        }
        pthread_mutex_lock(&m);
        if (++inside > most)
            most = inside;
        printf("%d enters, %d inside\n", *(int *)argument, inside);
        pthread_mutex_unlock(&m);
        pthread_mutex_lock(&m);
        inside--;
        pthread_mutex_unlock(&m);
        sem_post(&seats);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    int numbers[4] = {0, 1, 2, 3}, free_seats;
    sem_init(&seats, 0, 2);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, visit, &numbers[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sem_getvalue(&seats, &free_seats);
    sem_destroy(&seats);
    printf("%d refused\n", refused);
    return most <= 2 && free_seats == 2 ? 0 : 1;
}
