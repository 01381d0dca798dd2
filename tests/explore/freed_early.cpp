// Order violation: the owner takes an object away although a worker may still use it.
#include <cstdlib>
#include <mutex>
#include <thread>
std::mutex m;
int *object = nullptr;
bool started;
static int use() {
    std::lock_guard<std::mutex> g(m);
    started = true;
    if (object == nullptr) std::abort();
    return *object;
}
int main() {
    object = new int(7);
    std::thread worker([] { use(); use(); });
    { std::lock_guard<std::mutex> g(m); if (started) { delete object; object = nullptr; } }
    worker.join();
}
