// Molecular dynamics: particles in a periodic box that repel and attract each other after Lennard and Jones, up to a cut-off
// radius. Each thread adds the forces of its pairs to an array of its own; the arrays are summed up between barriers.
// Usage: moldyn [EDGE [STEPS [THREADS]]] (EDGE³ particles)
// Check: action equals reaction: the total momentum stays zero; the total energy stays what it was, nearly.
// Race-free: shared arrays are written in bands, a thread's force array by that thread; barriers separate the phases.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

struct vector {
    double x, y, z;
};

static size_t edge = 12, count, steps = 12, threads = 4;
static struct vector *places, *speeds, *partial_forces[MOST_THREADS];
static double potentials[MOST_THREADS], box;
static double first_energy, last_energy;
static pthread_barrier_t barrier;

static const double STEP = 0.001, CUT_OFF = 2.5, SPACING = 1.2;

static double nearest(double difference) { return difference - box * round(difference / box); }

// Pairs (i, j) with i < j; rows are dealt out in turns, as low ones are longer.
static void forces_of(size_t self) {
    struct vector *forces = partial_forces[self];
    memset(forces, 0, count * sizeof *forces);
    double potential = 0;
    for (size_t i = self; i < count; i += threads)
        for (size_t j = i + 1; j < count; j++) {
            double x = nearest(places[i].x - places[j].x), y = nearest(places[i].y - places[j].y),
                   z = nearest(places[i].z - places[j].z);
            double square = x * x + y * y + z * z;
            if (square > CUT_OFF * CUT_OFF)
                continue;
            double inverse = 1 / square, sixth = inverse * inverse * inverse;
            double strength = 24 * inverse * sixth * (2 * sixth - 1);
            potential += 4 * sixth * (sixth - 1);
            forces[i].x += strength * x, forces[i].y += strength * y, forces[i].z += strength * z;
            forces[j].x -= strength * x, forces[j].y -= strength * y, forces[j].z -= strength * z;
        }
    potentials[self] = potential;
}

static void accelerate(size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        for (size_t t = 0; t < threads; t++) {
            speeds[i].x += STEP / 2 * partial_forces[t][i].x;
            speeds[i].y += STEP / 2 * partial_forces[t][i].y;
            speeds[i].z += STEP / 2 * partial_forces[t][i].z;
        }
}

static double energy(void) {
    double sum = 0;
    for (size_t t = 0; t < threads; t++)
        sum += potentials[t];
    for (size_t i = 0; i < count; i++)
        sum += (speeds[i].x * speeds[i].x + speeds[i].y * speeds[i].y + speeds[i].z * speeds[i].z) / 2;
    return sum;
}

static void *run(void *argument) {
    size_t self = (size_t)argument, first = count * self / threads, end = count * (self + 1) / threads;
    forces_of(self);
    pthread_barrier_wait(&barrier);
    if (self == 0)
        first_energy = energy();
    pthread_barrier_wait(&barrier);
    for (size_t step = 0; step < steps; step++) {
        accelerate(first, end);
        for (size_t i = first; i < end; i++)
            places[i].x += STEP * speeds[i].x, places[i].y += STEP * speeds[i].y, places[i].z += STEP * speeds[i].z;
        pthread_barrier_wait(&barrier);
        forces_of(self);
        pthread_barrier_wait(&barrier);
        accelerate(first, end);
    }
    return NULL;
}

int main(int argument_count, char **arguments) {
    if (argument_count > 1)
        edge = strtoul(arguments[1], NULL, 10);
    if (argument_count > 2)
        steps = strtoul(arguments[2], NULL, 10);
    if (argument_count > 3)
        threads = strtoul(arguments[3], NULL, 10);
    if (edge < 5 || edge > 100 || threads == 0 || threads > MOST_THREADS)
        return 2; // a box that is too small would let a pair meet itself twice
    count = edge * edge * edge;
    box = (double)edge * SPACING;
    places = calloc(count, sizeof *places);
    speeds = calloc(count, sizeof *speeds);
    if (places == NULL || speeds == NULL)
        return 2;
    for (size_t t = 0; t < threads; t++)
        if ((partial_forces[t] = calloc(count, sizeof **partial_forces)) == NULL)
            return 2;
    for (size_t i = 0; i < count; i++) {
        double shift = (double)(i * 37 % 101) / 1010;
        places[i] = (struct vector){(double)(i % edge) * SPACING + shift, (double)(i / edge % edge) * SPACING - shift,
                                    (double)(i / edge / edge) * SPACING + shift / 2};
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    pthread_barrier_destroy(&barrier);
    last_energy = energy();
    struct vector momentum = {0};
    for (size_t i = 0; i < count; i++)
        momentum.x += speeds[i].x, momentum.y += speeds[i].y, momentum.z += speeds[i].z;
    int right = fabs(momentum.x) + fabs(momentum.y) + fabs(momentum.z) < 1e-6 &&
                fabs(last_energy - first_energy) < 1e-2 * (1 + fabs(first_energy));
    printf("moldyn of %zu, %zu steps with %zu threads, energy %.6f: %s\n", count, steps, threads, last_energy,
           right ? "right" : "WRONG");
    return !right;
}
