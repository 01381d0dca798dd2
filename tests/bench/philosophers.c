// Many locks, short sections: dining philosophers who take the fork with the smaller number first.
// Usage: philosophers [MEALS [THREADS]]
// Check: every fork was used once for each meal of its two neighbours, every meal was eaten.
// Race-free: a fork's count is changed with its lock held.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct fork {
    pthread_mutex_t lock;
    size_t uses;
};
struct philosopher {
    pthread_t handle;
    size_t seat, eaten;
};

static size_t meals = 250000, threads = 4;
static struct fork forks[MOST_THREADS + 1];

static void *dine(void *argument) {
    struct philosopher *self = argument;
    size_t left = self->seat, right = (self->seat + 1) % threads;
    struct fork *first = &forks[left < right ? left : right], *second = &forks[left < right ? right : left];
    while (self->eaten < meals) {
        pthread_mutex_lock(&first->lock);
        pthread_mutex_lock(&second->lock);
        first->uses++;
        second->uses++;
        self->eaten++;
        pthread_mutex_unlock(&second->lock);
        pthread_mutex_unlock(&first->lock);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        meals = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (threads < 2 || threads > MOST_THREADS)
        return 2;
    struct philosopher table[MOST_THREADS] = {0};
    for (size_t i = 0; i < threads; i++)
        pthread_mutex_init(&forks[i].lock, NULL);
    for (size_t i = 0; i < threads; i++) {
        table[i].seat = i;
        if (pthread_create(&table[i].handle, NULL, dine, &table[i]) != 0)
            return 2;
    }
    size_t eaten = 0;
    int right = 1;
    for (size_t i = 0; i < threads; i++) {
        pthread_join(table[i].handle, NULL);
        eaten += table[i].eaten;
    }
    for (size_t i = 0; i < threads; i++) {
        right &= forks[i].uses == 2 * meals;
        pthread_mutex_destroy(&forks[i].lock);
    }
    right &= eaten == meals * threads;
    printf("philosophers: %zu meals with %zu threads: %s\n", eaten, threads, right ? "right" : "WRONG");
    return !right;
}
