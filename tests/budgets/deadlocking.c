// Philosophers who take the left fork first: deadlocks of some schedules, and many lock orders.
#include <pthread.h>

enum { COUNT = 4, MEALS = 5 };
static pthread_mutex_t forks[COUNT];
static int meals[COUNT];

static void *eat(void *number) {
    long left = (long)number, right = (left + 1) % COUNT;
    for (int i = 0; i < MEALS; i++) {
        pthread_mutex_lock(&forks[left]);
        pthread_mutex_lock(&forks[right]);
        meals[left]++;
        pthread_mutex_unlock(&forks[right]);
        pthread_mutex_unlock(&forks[left]);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pthread_mutex_init(&forks[i], NULL);
    }
    for (long i = 0; i < COUNT; i++) {
        pthread_create(&threads[i], NULL, eat, (void *)i);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
