// Two workers take tasks from a queue and wait while it is empty; every other task updates `total` without a lock.
// Shows: forcing an order in which waits of the recorded one are not needed, or come elsewhere, and tasks go to the other worker.
// True:  any two of the tasks with odd numbers may run at the same time.
// expect: race 52 52 co-enabled
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

static std::mutex lock;
static std::condition_variable ready;
static std::queue<std::function<void()>> tasks;
static bool closed;
static int total, done;

static void count() {
    std::lock_guard<std::mutex> guard(lock);
    done++;
}

static void work() {
    for (;;) {
        std::function<void()> task;
        {
            std::unique_lock<std::mutex> guard(lock);
            ready.wait(guard, [] { return closed || !tasks.empty(); });
            if (tasks.empty()) {
                return;
            }
            task = std::move(tasks.front());
            tasks.pop();
        }
        task();
        count();
    }
}

static void post(std::function<void()> task) {
    {
        std::lock_guard<std::mutex> guard(lock);
        tasks.push(std::move(task));
    }
    ready.notify_one();
}

int main() {
    std::thread one(work), other(work);
    for (int i = 1; i <= 5; i++) {
        post([i] {
            if (i % 2 == 1) {
                total += i;
            }
        });
    }
    {
        std::lock_guard<std::mutex> guard(lock);
        closed = true;
    }
    ready.notify_all();
    one.join();
    other.join();
    return done == 5 ? 0 : 1;
}
