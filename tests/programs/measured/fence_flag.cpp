// A relaxed flag with fences.
// Shows: publication by stand-alone fences (C++20 [atomics.fences]).
// True:  the release fence before the store synchronises with the acquire fence behind the load that sees it.
// expect: none
#include <atomic>
#include <sched.h>
#include <thread>

static int data;
static std::atomic<int> flag;

static void publish() {
    data = 42;
    std::atomic_thread_fence(std::memory_order_release);
    flag.store(1, std::memory_order_relaxed);
}

int main() {
    std::thread publisher(publish);
    while (flag.load(std::memory_order_relaxed) == 0)
        sched_yield();
    std::atomic_thread_fence(std::memory_order_acquire);
    int seen = data;
    publisher.join();
    return seen == 42 ? 0 : 1;
}
