// bug: a count is lowered by one atomic operation and looked at by another one: two threads see zero, and both free
// shows: atomicity-violation
#include <atomic>
#include <cstdlib>
#include <thread>

struct Object {
    std::atomic<int> references{2};
    std::atomic<int> freed{0};
};
static Object object;

static void drop(Object &it) {
#ifdef FIXED
    if (it.references.fetch_sub(1) != 1) return;
#else
    it.references.fetch_sub(1);
    if (it.references.load() != 0) return;
#endif
    if (it.freed.exchange(1) != 0) std::abort();
}

int main() {
    std::thread one([] { drop(object); }), other([] { drop(object); });
    one.join();
    other.join();
    return 0;
}
