// Two threads look at one exception, and whoever is done last frees it.
// Shows: the C++ library counts its users by atomics inside of it, which no instrumentation sees: what it frees then is in order.
// True:  each thread has a reference of its own, and gives it back behind its last look.
#include <exception>
#include <atomic>
#include <cstdio>
#include <thread>

struct failure {
    int code;
};

static std::atomic<int> total;

static void look(std::exception_ptr *held) {
    try {
        std::rethrow_exception(*held);
    } catch (const failure &seen) {
        total += seen.code;
    }
    delete held;
}

int main() {
    std::exception_ptr made = std::make_exception_ptr(failure{21});
    auto *one = new std::exception_ptr(made), *two = new std::exception_ptr(made);
    made = nullptr;
    std::thread first(look, one), second(look, two);
    first.join();
    second.join();
    std::printf("%d\n", total.load());
    return 0;
}
