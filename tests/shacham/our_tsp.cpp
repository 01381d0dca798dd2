// our_tsp: tsp with a lock around every use of the best length. A count of calls is kept for all threads: it is looked at under one lock when a thread begins with the last
// round of starts, and added to under another when it has none left. Right before and right after both, the thread looks at the best length, whose lock thus orders them, unless one
// thread stands between its two looks while another one does.
#include "common.hpp"

constexpr int CITIES = 8;
int distance[CITIES][CITIES];
static std::mutex best_lock, next_lock, report_lock, calls_lock;
int min_tour_len = 1 << 20;
int next_start = 0;
int starts;
long all_calls;
long reports;

struct Solver {
    int path[CITIES];
    bool visited[CITIES] = {};
    long calls = 0;
    int best() {
        std::lock_guard<std::mutex> guard(best_lock);
        return min_tour_len;
    }
    void extend(int depth, int length, int bound) {
        calls++;
        if (length >= bound) return;
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
            extend(depth + 1, length + distance[path[depth - 1]][city], bound);
            visited[city] = false;
        }
    }
    bool step() {
        int start;
        {
            std::lock_guard<std::mutex> guard(next_lock);
            start = next_start < starts ? next_start++ : -1;
        }
        if (start < 0) return false;
        int city = 1 + start % (CITIES - 1);
        path[0] = 0;
        path[1] = city;
        visited[city] = true;
        extend(2, distance[0][city], best());
        visited[city] = false;
        return true;
    }
    void solve(int share) {
        for (int done = 0; done < share && step(); done++) {}
        int length = best();
        {
            std::lock_guard<std::mutex> guard(report_lock);
            if (all_calls % 1000 == 0) reports++;
        }
        if (best() > length) std::abort();
        for (int done = 0; done < 40 && step(); done++) calculate(600000);
        length = best();
        {
            std::lock_guard<std::mutex> guard(calls_lock);
            all_calls += calls;
        }
        if (best() > length) std::abort();
    }
};

int main(int count, char **words) {
    Arguments arguments(count, words, 160);
    starts = (arguments.size + 40) * arguments.threads;
    Random random(7);
    for (auto &row : distance)
        for (int &length : row) length = 10 + random.below(90);
    int share = arguments.size;
    run_threads(arguments.threads, [share](int) { Solver().solve(share); });
    return all_calls > 0 ? 0 : 1;
}
