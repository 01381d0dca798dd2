// DQueries: clients of a shared data base query it, then reorganise it. How many did so is looked at under the key's lock
// before, and counted under the lock of deletions by a client that was let in twice for its deletions. The lock of these
// times orders both accesses unless a client is let in while another one stands before its look.
#include "gate.hpp"

struct Clause {
    int weight = 0;
    bool deleted = false;
};
static std::vector<Clause> pool;
static std::mutex key_lock, num_lock, del_lock;
static Gate maintenance;
int num_deleted, num_del_itr, compressed;

static std::uint32_t query(Random &random, int queries) {
    std::uint32_t sum = 0;
    std::vector<std::uint32_t> index(32);
    for (int number = 0; number < queries; number++) {
        for (std::size_t at = 0; at < index.size(); at++) index[at] = random.next() & 1023;
        for (std::size_t at = 0; at < index.size(); at++) sum += index[at];
    }
    return sum;
}

static void reorganise(int number, int threads) {
    maintenance.arrive();
    {
        std::lock_guard<std::mutex> guard(key_lock);
        if (num_del_itr % 5 == 4) compressed++;
    }
    if (!maintenance.pass(2)) return;
    std::size_t each = pool.size() / static_cast<std::size_t>(threads);
    std::size_t start = each * static_cast<std::size_t>(number);
    {
        std::lock_guard<std::mutex> guard(num_lock);
        for (std::size_t at = start; at < start + each; at++)
            if (pool[at].weight > 50 && !pool[at].deleted) {
                pool[at].deleted = true;
                num_deleted++;
            }
    }
    std::lock_guard<std::mutex> guard(del_lock);
    ++num_del_itr;
}

int main(int count, char **words) {
    Arguments arguments(count, words, 24000);
    pool.resize(static_cast<std::size_t>(60 * arguments.threads));
    Random random(13);
    for (Clause &clause : pool) clause.weight = random.below(100);
    int threads = arguments.threads, size = arguments.size / threads;
    run_with(maintenance, 6, threads, [=](int number) {
        Random own_random(static_cast<std::uint64_t>(number) + 17);
        std::uint32_t sum = query(own_random, size);
        reorganise(number, threads);
        if (sum == 0) std::abort();
    });
    return num_del_itr <= threads ? 0 : 1;
}
