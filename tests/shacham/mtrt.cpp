// mtrt: threads render rows of a scene of spheres; each says at the end of every row, without any lock, which one it rendered last.
#include "common.hpp"

constexpr int WIDTH = 160, SPHERES = 6;
struct Sphere {
    float x, y, z, radius;
};
static Sphere scene[SPHERES];
static std::mutex row_lock;
int next_row, rows, last_row;
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

static void render(int) {
    for (;;) {
        int row;
        {
            std::lock_guard<std::mutex> guard(row_lock);
            row = next_row++;
        }
        if (row >= rows) return;
        for (int column = 0; column < WIDTH; column++)
            picture[static_cast<std::size_t>(row * WIDTH + column)] = trace(static_cast<float>(column), static_cast<float>(row));
        last_row = row;
    }
}

int main(int count, char **words) {
    Arguments arguments(count, words, 400);
    rows = arguments.size;
    picture.resize(static_cast<std::size_t>(rows * WIDTH));
    Random random(3);
    for (Sphere &sphere : scene)
        sphere = {float(random.below(WIDTH)), float(random.below(rows)), float(random.below(500)), float(5 + random.below(40))};
    run_threads(arguments.threads, render);
    return last_row < rows ? 0 : 1;
}
