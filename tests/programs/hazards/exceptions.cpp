// C++ exceptions through locks.
// Shows: unwinding that releases locks and leaves instrumented frames.
// True:  each throw happens with the lock held; the guard's destructor releases it.
// expect: none
#include <mutex>
#include <stdexcept>
#include <thread>

static std::mutex m;
static int counter;

static void fail(int depth) {
    if (depth > 0) {
        fail(depth - 1);
        return;
    }
    std::lock_guard<std::mutex> guard(m);
    counter++;
    throw std::runtime_error("as planned");
}

static void work(int *caught) {
    for (int i = 0; i < 20; i++) {
        try {
            fail(5);
        } catch (const std::runtime_error &) {
            ++*caught;
        }
    }
}

int main() {
    int caught[2] = {0, 0};
    std::thread a(work, &caught[0]);
    std::thread b(work, &caught[1]);
    a.join();
    b.join();
    return counter == 40 && caught[0] == 20 && caught[1] == 20 ? 0 : 1;
}
