// A queue with std::mutex and std::condition_variable.
// Shows: the C++ library's synchronisation around a std::deque.
// True:  the queue is used with the lock held only.
// expect: none
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

static std::mutex m;
static std::condition_variable changed;
static std::deque<int> items;
static bool closed;

static void produce() {
    for (int i = 1; i <= 40; i++) {
        std::lock_guard<std::mutex> guard(m);
        items.push_back(i);
        changed.notify_one();
    }
    std::lock_guard<std::mutex> guard(m);
    closed = true;
    changed.notify_all();
}

static void consume(long *sum) {
    std::unique_lock<std::mutex> guard(m);
    for (;;) {
        changed.wait(guard, [] { return closed || !items.empty(); });
        if (items.empty())
            return;
        *sum += items.front();
        items.pop_front();
    }
}

int main() {
    long sums[2] = {0, 0};
    std::thread a(consume, &sums[0]);
    std::thread b(consume, &sums[1]);
    std::thread c(produce);
    a.join();
    b.join();
    c.join();
    return sums[0] + sums[1] == 820 ? 0 : 1;
}
