// A race hidden by lock order.
// Shows: the two writes of `data` look ordered when the writer's critical section happens to come first.
// True:  the critical sections share nothing, so the reordering that swaps them keeps the value of every read.
// expect: race 12 22 co-enabled
#include <mutex>
#include <thread>

static std::mutex m;
static int data, first_done, second_done;

static void first() {
    data = 1;
    std::lock_guard<std::mutex> guard(m);
    first_done = 1;
}

static void second() {
    {
        std::lock_guard<std::mutex> guard(m);
        second_done = 1;
    }
    data = 2;
}

int main() {
    std::thread a(first);
    std::thread b(second);
    a.join();
    b.join();
    return first_done && second_done && data != 0 ? 0 : 1;
}
