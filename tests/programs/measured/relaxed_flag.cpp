// A relaxed flag without fences.
// Shows: a race whose two accesses can never stand side by side: the reader waits for the flag that follows the write.
// True:  both are executed in every run and C++20 happens-before orders neither.
// expect: race 13 21 unordered
#include <atomic>
#include <sched.h>
#include <thread>

static int data;
static std::atomic<int> flag;

static void publish() {
    data = 42;
    flag.store(1, std::memory_order_relaxed);
}

int main() {
    std::thread publisher(publish);
    while (flag.load(std::memory_order_relaxed) == 0)
        sched_yield();
    int seen = data;
    publisher.join();
    return seen == 42 ? 0 : 1;
}
