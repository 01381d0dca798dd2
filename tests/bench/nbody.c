// Computation: gravity between all pairs of bodies, two barriers a step, one band of bodies per thread. Each thread reads every
// position again for each of its bodies: many accesses, few of them new since the last barrier.
// Usage: nbody [BODIES [STEPS [THREADS]]]
// Check: the total momentum, zero at first, stays zero but for rounding.
// Race-free: forces are computed from positions that nobody moves; a barrier separates that from the moves.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct body {
    double x, y, z, mass;
    double vx, vy, vz;
};

static size_t count = 1200, steps = 40, threads = 4;
static struct body *bodies;
static pthread_barrier_t barrier;

static const double STEP = 1e-4, SOFTENING = 1e-3;

static void accelerate(struct body *one) {
    double ax = 0, ay = 0, az = 0;
    for (size_t i = 0; i < count; i++) {
        const struct body *other = &bodies[i];
        double dx = other->x - one->x, dy = other->y - one->y, dz = other->z - one->z;
        double square = dx * dx + dy * dy + dz * dz + SOFTENING;
        double strength = other->mass / (square * sqrt(square));
        ax += dx * strength;
        ay += dy * strength;
        az += dz * strength;
    }
    one->vx += STEP * ax;
    one->vy += STEP * ay;
    one->vz += STEP * az;
}

static void *run_band(void *argument) {
    size_t band = (size_t)argument;
    size_t first = count * band / threads, end = count * (band + 1) / threads;
    for (size_t step = 0; step < steps; step++) {
        for (size_t i = first; i < end; i++)
            accelerate(&bodies[i]);
        pthread_barrier_wait(&barrier);
        for (size_t i = first; i < end; i++) {
            bodies[i].x += STEP * bodies[i].vx;
            bodies[i].y += STEP * bodies[i].vy;
            bodies[i].z += STEP * bodies[i].vz;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argument_count, char **arguments) {
    if (argument_count > 1)
        count = strtoul(arguments[1], NULL, 10);
    if (argument_count > 2)
        steps = strtoul(arguments[2], NULL, 10);
    if (argument_count > 3)
        threads = strtoul(arguments[3], NULL, 10);
    if (count == 0 || count > 1000000 || threads == 0 || threads > MOST_THREADS)
        return 2;
    bodies = calloc(count, sizeof *bodies);
    if (bodies == NULL)
        return 2;
    for (size_t i = 0; i < count; i++) {
        double at = (double)i;
        bodies[i] = (struct body){.x = cos(at), .y = sin(2.0 * at), .z = cos(3.0 * at), .mass = 1 + (double)(i % 5)};
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run_band, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    pthread_barrier_destroy(&barrier);
    double px = 0, py = 0, pz = 0, speed = 0;
    for (size_t i = 0; i < count; i++) {
        px += bodies[i].mass * bodies[i].vx;
        py += bodies[i].mass * bodies[i].vy;
        pz += bodies[i].mass * bodies[i].vz;
        speed += fabs(bodies[i].vx) + fabs(bodies[i].vy) + fabs(bodies[i].vz);
    }
    int moved = count == 1 || steps == 0 || speed > 0;
    int right = moved && fabs(px) + fabs(py) + fabs(pz) <= 1e-9 * (1 + speed);
    printf("nbody of %zu, %zu steps with %zu threads: %s\n", count, steps, threads, right ? "right" : "WRONG");
    free(bodies);
    return !right;
}
