// Atomicity violation: two fields that belong together are written under two acquisitions of one lock.
#include <cassert>
#include <mutex>
#include <thread>
std::mutex m;
int low, high;
static void set(int value) { { std::lock_guard<std::mutex> g(m); low = value; } std::lock_guard<std::mutex> g(m); high = value; }
int main() {
    std::thread a([] { set(1); }), b([] { set(2); });
    a.join(); b.join();
    assert(low == high);
}
