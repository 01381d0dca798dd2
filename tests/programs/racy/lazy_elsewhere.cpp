// Three ways of lazy initialisation, and an update behind them that no lock protects.
// Shows: forcing an order in which another thread initialises: it has more operations than it had, and the recorded one fewer.
// True:  call_once, the static local and the double-checked table are right; `unprotected` is a race.
// expect: race 53 53 co-enabled
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

struct Config {
    std::string name = "default";
    int level = 3;
};

static std::once_flag once;
static Config *config;
static std::atomic<int *> table;
static std::mutex table_lock;
static std::mutex lock;
static int counter, unprotected;

static Config &instance() {
    static Config made;
    return made;
}

static int *entries() {
    int *found = table.load(std::memory_order_acquire);
    if (!found) {
        std::lock_guard<std::mutex> guard(table_lock);
        found = table.load(std::memory_order_relaxed);
        if (!found) {
            found = new int[4]{1, 2, 3, 4};
            table.store(found, std::memory_order_release);
        }
    }
    return found;
}

static void add(int value) {
    std::lock_guard<std::mutex> guard(lock);
    counter += value;
}

static void work(int id) {
    std::call_once(once, [] {
        config = new Config;
    });
    add(config->level);
    int value = entries()[id] + instance().level;
    add(value);
    unprotected += value;
    add(value);
}

int main() {
    std::thread one(work, 0), two(work, 1), three(work, 2);
    one.join();
    two.join();
    three.join();
    std::printf("%d\n", counter);
    delete config;
    delete[] table.load();
    return 0;
}
