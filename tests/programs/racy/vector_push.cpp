// push_back from two threads.
// Shows: races inside inlined library code, named by the caller's lines.
// True:  the capacity is reserved, so no element moves; size and element are written by both.
// expect: race 12 16 co-enabled
#include <cstdio>
#include <thread>
#include <vector>

static std::vector<int> numbers;

static void push_one() {
    numbers.push_back(1);
}

static void push_two() {
    numbers.push_back(2);
}

int main() {
    numbers.reserve(8);
    std::thread a(push_one);
    std::thread b(push_two);
    a.join();
    b.join();
    std::printf("%zu\n", numbers.size());
    return 0;
}
