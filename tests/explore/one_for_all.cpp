// Lost wake-up: one signal for a queue whose producers and consumers wait for the same condition.
#include <condition_variable>
#include <mutex>
#include <thread>
std::mutex m;
std::condition_variable changed;
int held;
static void put() { std::unique_lock<std::mutex> lock(m); while (held == 1) changed.wait(lock); held++; changed.notify_one(); }
static void take() { std::unique_lock<std::mutex> lock(m); while (held == 0) changed.wait(lock); held--; changed.notify_one(); }
int main() {
    std::thread a([] { put(); put(); }), b([] { put(); put(); }), c([] { take(); take(); }), d([] { take(); take(); });
    a.join(); b.join(); c.join(); d.join();
}
