// bug: a load and a store, each atomic, are not one increment
// shows: atomicity-violation
#include <atomic>
#include <cstdio>
#include <thread>

static std::atomic<int> hits{0};

static void hit() {
#ifdef FIXED
    hits.fetch_add(1);
#else
    int seen = hits.load();
    hits.store(seen + 1);
#endif
}

int main() {
    std::thread one(hit), other(hit);
    one.join();
    other.join();
    std::printf("%d hits\n", hits.load());
}
