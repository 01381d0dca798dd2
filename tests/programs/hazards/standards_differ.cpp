// A relaxed store after a release store, by the same thread.
// Shows: where C11 and C++20 disagree: C11's release sequence includes the second store, C++20's does not.
// True:  under C++20 the two accesses of `data` race; where the standards differ nothing is to be proven.
// expect: none
#include <atomic>
#include <sched.h>
#include <thread>

static int data;
static std::atomic<int> flag;

static void publish() {
    data = 42;
    flag.store(1, std::memory_order_release);
    flag.store(2, std::memory_order_relaxed);
}

int main() {
    std::thread publisher(publish);
    while (flag.load(std::memory_order_acquire) != 2)
        sched_yield();
    int seen = data;
    publisher.join();
    return seen == 42 ? 0 : 1;
}
