// std::thread::detach, and a thread that outlives main.
// Shows: threads nobody joins; one of them waits for ever when the process ends.
// True:  main waits for the first through a promise; what the second one waits on is never destroyed.
// expect: none
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

struct Shared {
    std::mutex m;
    std::condition_variable never;
};

int main() {
    static Shared &shared = *new Shared;
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    std::thread([promise = std::move(promise)]() mutable { promise.set_value(5); }).detach();
    std::thread([] {
        std::unique_lock<std::mutex> guard(shared.m);
        for (;;)
            shared.never.wait(guard);
    }).detach();
    return future.get() == 5 ? 0 : 1;
}
