// Control that comes back other than by returns: exceptions, longjmp, signal handlers, a forked child, callbacks of libc, threads
// that end in the middle. Two counters are kept together under one lock all the while.
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::mutex lock;
static long sum, count;
static volatile sig_atomic_t handled;
static jmp_buf back;

struct Guard {
    long &left;
    explicit Guard(long &left) : left(left) {}
    ~Guard() { left++; }
};

static __attribute__((noinline)) long thrower(long depth, long &left) {
    Guard guard(left);
    if (depth == 0) throw std::runtime_error("deep");
    return thrower(depth - 1, left) + 1;
}

static __attribute__((noinline)) long catches(long depth) {
    long left = 0;
    for (int i = 0; i < 3; i++) {
        try {
            left += thrower(depth, left);
        } catch (const std::runtime_error &error) {
            left += std::string(error.what()).size();
        }
    }
    return left;
}

static __attribute__((noinline)) void jumps(int depth) {
    if (depth == 0) longjmp(back, 7);
    jumps(depth - 1);
}

static __attribute__((noinline)) int jumped() {
    volatile int before = 3;
    int code = setjmp(back);
    if (code == 0) jumps(4);
    return code + before;
}

static void on_signal(int) { handled = handled + 1; }

static int compare(const void *a, const void *b) {
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void work(int number) {
    std::vector<int> values{5, 3, number, 1};
    qsort(values.data(), values.size(), sizeof(int), compare);
    long found = catches(number) + values[0];
    std::lock_guard<std::mutex> held(lock);
    sum += found;
    count = count + sum % 2 + 1;
}

int main() {
    signal(SIGUSR1, on_signal);
    int code = jumped();
    raise(SIGUSR1);
    pid_t child = fork();
    if (child == 0) _exit(catches(2) == 21 && jumped() == 10 ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    std::thread one(work, 2), two(work, 3);
    one.join();
    two.join();
    return code == 10 && handled == 1 && status == 0 && count > 0 ? 0 : 1;
}
