// Double-checked locking with an atomic pointer.
// Shows: the correct form of the idiom.
// True:  a thread that sees the pointer without the lock sees it by an acquire load of the release store.
// expect: none
#include <atomic>
#include <mutex>
#include <thread>

struct Config {
    int value;
};

static std::atomic<Config *> instance;
static std::mutex m;

static Config *get() {
    Config *seen = instance.load(std::memory_order_acquire);
    if (seen == nullptr) {
        std::lock_guard<std::mutex> guard(m);
        seen = instance.load(std::memory_order_relaxed);
        if (seen == nullptr) {
            seen = new Config{7};
            instance.store(seen, std::memory_order_release);
        }
    }
    return seen;
}

static void use(int *result) {
    *result = get()->value;
}

int main() {
    int results[3] = {0, 0, 0};
    std::thread a(use, &results[0]);
    std::thread b(use, &results[1]);
    std::thread c(use, &results[2]);
    a.join();
    b.join();
    c.join();
    delete instance.load();
    return results[0] == 7 && results[1] == 7 && results[2] == 7 ? 0 : 1;
}
