// A std::shared_ptr assigned while it is copied.
// Shows: that the count of owners is atomic and the pointer itself is not.
// True:  `keep` owns the first object and `copy` outlives the threads, so nothing is destroyed too early in any order.
// expect: race 14 18 co-enabled
// allow: race 14 18 unordered
#include <memory>
#include <thread>

static std::shared_ptr<int> current = std::make_shared<int>(1);
static std::shared_ptr<int> keep = current;
static std::shared_ptr<int> copy;

static void replace() {
    current = std::make_shared<int>(2);
}

static void take() {
    copy = current;
}

int main() {
    std::thread a(replace);
    std::thread b(take);
    a.join();
    b.join();
    return copy && *keep == 1 ? 0 : 1;
}
