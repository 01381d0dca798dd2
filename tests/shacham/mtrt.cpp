// mtrt: threads render rows of a scene of spheres, each its own; after each row they say, without a lock, which was the last.
#include "common.hpp"

constexpr int WIDTH = 160, SPHERES = 6;
struct Sphere {
    float x, y, z, radius;
};
static Sphere scene[SPHERES];
int rows, last_row;
static std::vector<float> picture;

static float trace(float x, float y) {
    float nearest = 1e9f;
    for (const Sphere &sphere : scene) {
        float dx = x - sphere.x, dy = y - sphere.y;
        float inside = sphere.radius * sphere.radius - dx * dx - dy * dy;
        if (inside > 0 && sphere.z - inside < nearest) nearest = sphere.z - inside;
    }
    return nearest;
}

__attribute__((noinline)) static void finished(int row) { last_row = row; }

static void render(int first, int step) {
    for (int row = first; row < rows; row += step) {
        for (int column = 0; column < WIDTH; column++)
            picture[static_cast<std::size_t>(row * WIDTH + column)] = trace(static_cast<float>(column), static_cast<float>(row));
        finished(row);
    }
}

int main(int count, char **words) {
    Arguments arguments(count, words, 400);
    rows = arguments.size;
    picture.resize(static_cast<std::size_t>(rows * WIDTH));
    Random random(3);
    for (Sphere &sphere : scene)
        sphere = {float(random.below(WIDTH)), float(random.below(rows)), float(random.below(500)), float(5 + random.below(40))};
    int threads = arguments.threads;
    run_threads(threads, [threads](int number) { render(number, threads); });
    return last_row < rows ? 0 : 1;
}
