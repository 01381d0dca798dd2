// Read-mostly: rays through a scene of spheres, with shadows and one reflection. Rows are drawn from a counter under a lock,
// and every row's checksum is added to a total under another.
// Usage: raytracer [SIZE [THREADS]]
// Check: the total is that of rendering a sample of the rows again, serially, and of the pixels stored.
// Race-free: the scene is written before the threads start; a row is rendered by the thread that drew it.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SPHERES = 64, MOST_THREADS = 64 };

struct vector {
    double x, y, z;
};
struct sphere {
    struct vector centre;
    double radius, shine;
    int32_t colour;
};

static size_t size = 480, threads = 4;
static struct sphere spheres[SPHERES];
static uint8_t *pixels;
static pthread_mutex_t row_lock = PTHREAD_MUTEX_INITIALIZER, sum_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t next_row;
static uint64_t total;

static const struct vector LIGHT = {-0.48, 0.6, -0.64};

static double dot(struct vector a, struct vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static struct vector along(struct vector from, struct vector direction, double way) {
    return (struct vector){from.x + direction.x * way, from.y + direction.y * way, from.z + direction.z * way};
}

// The way to the nearest sphere, INFINITY without one.
static double hit(struct vector from, struct vector direction, const struct sphere **what) {
    double nearest = INFINITY;
    for (size_t i = 0; i < SPHERES; i++) {
        const struct sphere *sphere = &spheres[i];
        struct vector to = along(sphere->centre, from, -1);
        double middle = dot(to, direction), square = sphere->radius * sphere->radius - dot(to, to) + middle * middle;
        if (square < 0)
            continue;
        double way = middle - sqrt(square);
        if (way > 1e-6 && way < nearest) {
            nearest = way;
            *what = sphere;
        }
    }
    return nearest;
}

static double shade(struct vector from, struct vector direction, int depth) {
    const struct sphere *sphere = NULL;
    double way = hit(from, direction, &sphere);
    if (sphere == NULL)
        return 16 + 16 * fabs(direction.y);
    struct vector place = along(from, direction, way), normal = along(place, sphere->centre, -1);
    normal = along((struct vector){0}, normal, 1 / sphere->radius);
    const struct sphere *blocker = NULL;
    double light = dot(normal, LIGHT);
    if (light < 0 || hit(place, LIGHT, &blocker) < INFINITY)
        light = 0.1;
    double colour = light * sphere->colour;
    if (depth > 0)
        colour += sphere->shine * shade(place, along(direction, normal, -2 * dot(direction, normal)), depth - 1);
    return colour;
}

static uint64_t render(size_t row, uint8_t *into) {
    uint64_t sum = 0;
    for (size_t column = 0; column < size; column++) {
        struct vector direction = {(double)column / (double)size - 0.5, 0.5 - (double)row / (double)size, 1};
        direction = along((struct vector){0}, direction, 1 / sqrt(dot(direction, direction)));
        into[column] = (uint8_t)fmin(255, shade((struct vector){0, 0, -4}, direction, 1));
        sum = sum * 31 + into[column];
    }
    return sum;
}

static void *run(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&row_lock);
        size_t row = next_row++;
        pthread_mutex_unlock(&row_lock);
        if (row >= size)
            return NULL;
        uint64_t sum = render(row, pixels + row * size);
        pthread_mutex_lock(&sum_lock);
        total += sum;
        pthread_mutex_unlock(&sum_lock);
    }
}

int main(int count, char **arguments) {
    if (count > 1)
        size = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (size == 0 || size > 16384 || threads == 0 || threads > MOST_THREADS)
        return 2;
    for (size_t i = 0; i < SPHERES; i++)
        spheres[i] = (struct sphere){.centre = {(double)(i % 8) - 3.5, (double)(i / 8) - 3.5, (double)(i * 5 % 7)},
                                     .radius = 0.3 + (double)(i % 5) / 20,
                                     .shine = (double)(i % 3) / 4,
                                     .colour = (int32_t)(60 + i * 3)};
    pixels = malloc(size * size);
    uint8_t *again = malloc(size);
    if (pixels == NULL || again == NULL)
        return 2;
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, NULL) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    uint64_t stored = 0;
    int right = 1;
    for (size_t row = 0; row < size; row++) {
        uint64_t sum = 0;
        for (size_t column = 0; column < size; column++)
            sum = sum * 31 + pixels[row * size + column];
        if (row % 16 == 0)
            right &= render(row, again) == sum;
        stored += sum;
    }
    right &= stored == total;
    printf("raytracer of %zu with %zu threads, sum %llx: %s\n", size, threads, (unsigned long long)total,
           right ? "right" : "WRONG");
    free(pixels), free(again);
    return !right;
}
