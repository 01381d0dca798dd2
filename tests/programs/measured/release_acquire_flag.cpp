// A release/acquire flag.
// Shows: publication by an atomic flag.
// True:  the acquire load that sees the release store is ordered behind everything before that store.
// expect: none
#include <atomic>
#include <sched.h>
#include <thread>

static int data;
static std::atomic<int> flag;

static void publish() {
    data = 42;
    flag.store(1, std::memory_order_release);
}

int main() {
    std::thread publisher(publish);
    while (flag.load(std::memory_order_acquire) == 0)
        sched_yield();
    int seen = data;
    publisher.join();
    return seen == 42 ? 0 : 1;
}
