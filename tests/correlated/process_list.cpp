// bug: whether a thread has a status is asked by one atomic read, and the status printed by another one; it may be gone between
// shows: atomicity-violation
#include <atomic>
#include <cstring>
#include <thread>

// After the process list of a database server, which crashed while a query ended.
static std::atomic<const char *> status{"sending data"};

static std::size_t show() {
#ifdef FIXED
    const char *text = status.load();
    return text ? std::strlen(text) : 0;
#else
    if (status.load() == nullptr) return 0;
    return std::strlen(status.load());
#endif
}

int main() {
    std::size_t width = 0;
    std::thread query([] { status.store(nullptr); });
    std::thread monitor([&] { width = show(); });
    query.join();
    monitor.join();
    return width > 80;
}
