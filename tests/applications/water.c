// Molecules that attract each other, all pairs of them, in the manner of water-nsquared: each thread takes the pairs of its own
// molecules and adds the forces to both, under the lock of each molecule; barriers separate the phases of a step.
// Usage: water [MOLECULES [STEPS [THREADS]]]
// Check: action equals reaction: forces are whole numbers, and their sum is zero.
// Seeded race: the potential energy is added up under no lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 256, MOST_THREADS = 16 };
struct molecule {
    pthread_mutex_t lock;
    long place, speed, force;
};
static struct molecule molecules[MOST];
static long count = 24, steps = 2, threads = 3, potential;
#ifndef SEEDED
static pthread_mutex_t energy = PTHREAD_MUTEX_INITIALIZER;
#endif
static pthread_barrier_t barrier;

static void push(long which, long force) {
    pthread_mutex_lock(&molecules[which].lock);
    molecules[which].force += force;
    pthread_mutex_unlock(&molecules[which].lock);
}

static void interact(long first, long end) {
    long own = 0;
    for (long i = first; i < end; i++)
        for (long k = 1; k <= count / 2; k++) {
            long j = (i + k) % count;
            // Every pair once: of those that are half a ring apart, the lower one has it.
            if (2 * k == count && i > j) continue;
            long force = (molecules[j].place - molecules[i].place) / 16;
            push(i, force);
            push(j, -force);
            own += force * force;
        }
#ifndef SEEDED
    pthread_mutex_lock(&energy);
#endif
    potential += own;
#ifndef SEEDED
    pthread_mutex_unlock(&energy);
#endif
}

static void *run(void *argument) {
    long self = (long)argument, first = count * self / threads, end = count * (self + 1) / threads;
    for (long step = 0; step < steps; step++) {
        interact(first, end);
        pthread_barrier_wait(&barrier);
        for (long i = first; i < end; i++) {
            molecules[i].speed += molecules[i].force;
            molecules[i].place += molecules[i].speed;
            molecules[i].force = 0;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) count = atol(argv[1]);
    if (argc > 2) steps = atol(argv[2]);
    if (argc > 3) threads = atol(argv[3]);
    if (count < 2 || count > MOST || threads < 1 || threads > MOST_THREADS) return 2;
    for (long i = 0; i < count; i++) {
        pthread_mutex_init(&molecules[i].lock, NULL);
        molecules[i].place = i * i * 37 % 1000;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (long i = 0; i < threads; i++) pthread_create(&handles[i], NULL, run, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    long momentum = 0;
    for (long i = 0; i < count; i++) momentum += molecules[i].speed;
    printf("momentum %ld, potential %ld\n", momentum, potential);
    return momentum != 0;
}
