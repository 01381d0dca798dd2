// tsp: branch and bound; the length of the best tour is compared without the lock under which it is lowered.
#include "common.hpp"

constexpr int CITIES = 10;
int distance[CITIES][CITIES];
static std::mutex best_lock, next_lock;
int min_tour_len = 1 << 20;
int next_start = 1;

struct Solver {
    int path[CITIES];
    bool visited[CITIES] = {};
    void extend(int depth, int length) {
        if (length >= min_tour_len) return; // without the lock
        if (depth == CITIES) {
            length += distance[path[CITIES - 1]][0];
            std::lock_guard<std::mutex> guard(best_lock);
            if (length < min_tour_len) min_tour_len = length;
            return;
        }
        for (int city = 1; city < CITIES; city++) {
            if (visited[city]) continue;
            visited[city] = true;
            path[depth] = city;
            extend(depth + 1, length + distance[path[depth - 1]][city]);
            visited[city] = false;
        }
    }
    void solve() {
        for (;;) {
            int start;
            {
                std::lock_guard<std::mutex> guard(next_lock);
                start = next_start++;
            }
            if (start >= CITIES) return;
            path[0] = 0;
            path[1] = start;
            visited[start] = true;
            extend(2, distance[0][start]);
            visited[start] = false;
        }
    }
};

int main(int count, char **words) {
    Arguments arguments(count, words, 7);
    Random random(static_cast<std::uint64_t>(arguments.size));
    for (auto &row : distance)
        for (int &length : row) length = 10 + random.below(90);
    run_threads(arguments.threads, [](int) { Solver().solve(); });
    return min_tour_len < 1 << 20 ? 0 : 1;
}
