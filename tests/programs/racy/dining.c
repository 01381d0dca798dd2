// Three dining philosophers.
// Shows: a deadlock cycle whose three sides are the same line.
// True:  it happens iff each philosopher has the left fork before any takes the right one.
// expect: deadlock 14 14 14
#include <pthread.h>

enum { SEATS = 3 };
static pthread_mutex_t forks[SEATS];
static int meals[SEATS];

static void *dine(void *argument) {
    int seat = *(int *)argument;
    pthread_mutex_lock(&forks[seat]);
    pthread_mutex_lock(&forks[(seat + 1) % SEATS]);
    meals[seat]++;
    pthread_mutex_unlock(&forks[(seat + 1) % SEATS]);
    pthread_mutex_unlock(&forks[seat]);
    return NULL;
}

int main(void) {
    pthread_t threads[SEATS];
    int seats[SEATS] = {0, 1, 2};
    for (int i = 0; i < SEATS; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (int i = 0; i < SEATS; i++)
        pthread_create(&threads[i], NULL, dine, &seats[i]);
    int eaten = 0;
    for (int i = 0; i < SEATS; i++) {
        pthread_join(threads[i], NULL);
        eaten += meals[i];
    }
    return eaten == SEATS ? 0 : 1;
}
