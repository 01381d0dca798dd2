// std::call_once.
// Shows: initialisation by one of several threads.
// True:  the return of call_once orders the callee before every caller.
// expect: none
#include <memory>
#include <mutex>
#include <thread>

static std::once_flag once;
static std::unique_ptr<int> value;
static int calls;

static void use(int *result) {
    std::call_once(once, [] {
        value = std::make_unique<int>(21);
        calls++;
    });
    *result = *value * 2;
}

int main() {
    int results[3] = {0, 0, 0};
    std::thread a(use, &results[0]);
    std::thread b(use, &results[1]);
    std::thread c(use, &results[2]);
    a.join();
    b.join();
    c.join();
    return calls == 1 && results[0] + results[1] + results[2] == 126 ? 0 : 1;
}
