// Double-checked locking without atomics.
// Shows: two races at once: on the pointer, and on the object behind it.
// True:  the unlocked test can meet the publication; the object's value is read only by a thread that has seen the pointer,
//        so that pair never stands side by side, but nothing orders it.
// expect: race 18 25 co-enabled
// expect: race 24 32 unordered
#include <mutex>
#include <thread>

struct Config {
    int value;
};

static Config *instance;
static std::mutex m;

static Config *get() {
    Config *seen = instance;
    if (seen == nullptr) {
        std::lock_guard<std::mutex> guard(m);
        seen = instance;
        if (seen == nullptr) {
            seen = new Config;
            seen->value = 7;
            instance = seen;
        }
    }
    return seen;
}

static void use(int *result) {
    *result = get()->value;
}

int main() {
    int results[2] = {0, 0};
    std::thread a(use, &results[0]);
    std::thread b(use, &results[1]);
    a.join();
    b.join();
    delete instance;
    return results[0] == 7 && results[1] == 7 ? 0 : 1;
}
