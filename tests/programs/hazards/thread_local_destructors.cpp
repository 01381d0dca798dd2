// thread_local objects with destructors.
// Shows: C++ destructors that lock, run after a thread's function and before its join.
// True:  the total is used with the lock held, or by main after the joins.
// expect: none
#include <mutex>
#include <string>
#include <thread>

static std::mutex m;
static size_t total;

struct Tally {
    std::string text = "a text that is long enough to be kept on the heap";
    ~Tally() {
        std::lock_guard<std::mutex> guard(m);
        total += text.size();
    }
};

static thread_local Tally tally;

static void work() {
    tally.text += "!";
}

int main() {
    std::thread a(work);
    std::thread b(work);
    a.join();
    b.join();
    return total == 100 ? 0 : 1;
}
