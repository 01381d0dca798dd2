// our_tsp: tsp with a lock around every use of the best length. A count of calls is kept for all threads: it is looked at
// under one lock when a thread has no start left, and added to under another by a thread that was asked for a summary
// twice. The lock of the summaries orders both accesses unless a thread is asked while another one stands before its look.
#include "gate.hpp"

constexpr int CITIES = 8;
int distance[CITIES][CITIES];
static std::mutex best_lock, next_lock, report_lock, calls_lock;
static Gate summaries;
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
        summaries.arrive();
        {
            std::lock_guard<std::mutex> guard(report_lock);
            if (all_calls % 1000 == 0) reports++;
        }
        if (!summaries.pass(2)) return;
        std::lock_guard<std::mutex> guard(calls_lock);
        all_calls += calls;
    }
};

int main(int count, char **words) {
    Arguments arguments(count, words, 320);
    int share = arguments.size / arguments.threads;
    starts = share * arguments.threads;
    Random random(7);
    for (auto &row : distance)
        for (int &length : row) length = 10 + random.below(90);
    run_with(summaries, 7, arguments.threads, [share](int) { Solver().solve(share); });
    return all_calls >= 0 ? 0 : 1;
}
