// C++ threads, containers and a condition variable.
// Shows: std::thread, std::mutex, std::condition_variable, std::map and std::string together.
// True:  the map is used with the lock held; workers start together when `started` is set.
// expect: none
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static std::mutex m;
static std::condition_variable changed;
static bool started;
static std::map<std::string, std::vector<int>> visits;

static void work(int me) {
    std::unique_lock<std::mutex> guard(m);
    changed.wait(guard, [] { return started; });
    for (int i = 0; i < 6; i++) {
        visits[i % 2 ? "a place with a long name, kept on the heap" : "a short one"].push_back(me);
        guard.unlock();
        guard.lock();
    }
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(work, i);
    {
        std::lock_guard<std::mutex> guard(m);
        started = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
        thread.join();
    size_t all = 0;
    for (const auto &place : visits) {
        std::printf("%s:", place.first.c_str());
        for (int visitor : place.second)
            std::printf(" %d", visitor);
        std::printf("\n");
        all += place.second.size();
    }
    return all == 24 ? 0 : 1;
}
