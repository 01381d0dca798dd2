// Peterson's lock.
// Shows: mutual exclusion of two threads from sequentially consistent loads and stores alone.
// True:  a thread enters after reading a value that the other one stored when it left or when it gave way; both stores release.
// expect: none
#include <atomic>
#include <sched.h>
#include <thread>

static std::atomic<bool> wants[2];
static std::atomic<int> gives_way;
static long counter;

static void work(int me) {
    int other = 1 - me;
    for (int i = 0; i < 30; i++) {
        wants[me] = true;
        gives_way = me;
        while (wants[other] && gives_way == me)
            sched_yield();
        counter++;
        wants[me] = false;
    }
}

int main() {
    std::thread a(work, 0);
    std::thread b(work, 1);
    a.join();
    b.join();
    return counter == 60 ? 0 : 1;
}
