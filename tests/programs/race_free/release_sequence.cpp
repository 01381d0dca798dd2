// A release sequence.
// Shows: a relaxed read-modify-write between a release store and the acquire load (C++20 [intro.races]).
// True:  the load reads the last element of a release sequence headed by the store, so the store synchronises with it.
// expect: none
#include <atomic>
#include <sched.h>
#include <thread>

static int data;
static std::atomic<int> stage;

static void publish() {
    data = 42;
    stage.store(1, std::memory_order_release);
}

static void pass_on() {
    int expected = 1;
    while (!stage.compare_exchange_weak(expected, 2, std::memory_order_relaxed)) {
        expected = 1;
        sched_yield();
    }
}

int main() {
    std::thread a(publish);
    std::thread b(pass_on);
    while (stage.load(std::memory_order_acquire) != 2)
        sched_yield();
    int seen = data;
    a.join();
    b.join();
    return seen == 42 ? 0 : 1;
}
