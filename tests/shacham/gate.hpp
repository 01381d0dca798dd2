// Times in which something can be done: a keeper opens and closes a gate, and threads pass while it is open. Who passes needs one
// particular order of its steps and the keeper's, so that a thread that is to pass several times is a search's task.
#pragma once
#include "common.hpp"
#include <condition_variable>

class Gate {
    std::mutex lock;
    std::condition_variable changed;
    int arrived = 0, opened = 0, waiting = 0;
    bool open = false, over = false;

    void set(bool to) {
        std::lock_guard<std::mutex> guard(lock);
        open = to;
        opened += to;
        changed.notify_all();
    }

public:
    void arrive() {
        std::lock_guard<std::mutex> guard(lock);
        arrived++;
        changed.notify_all();
    }
    // Waits until all have arrived, opens and closes the gate so many times, then leaves it closed. Recordings switch threads
    // after some accesses; these make an opening long enough for others.
    void keep(int all, int openings) {
        std::vector<std::uint32_t> own(40, 1);
        {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [&] { return arrived == all; });
        }
        calculate(20000000);
        for (int opening = 0; opening < openings; opening++) {
            set(true);
            private_work(own, 40);
            set(false);
            private_work(own, 10);
        }
        std::lock_guard<std::mutex> guard(lock);
        over = true;
        changed.notify_all();
    }
    // Passes at as many openings. False: there are no more.
    bool pass(int times) {
        for (int time = 0, last = 0; time < times; time++) {
            std::unique_lock<std::mutex> guard(lock);
            waiting++;
            changed.wait(guard, [&] { return over || (open && opened > last); });
            waiting--;
            if (over) return false;
            last = opened;
        }
        return true;
    }
};

// As `run_threads`, with one more that keeps the gate.
template <class Body> void run_with(Gate &gate, int openings, int count, Body body) {
    std::vector<std::thread> threads;
    for (int number = 0; number < count; number++) threads.emplace_back([=] { body(number); });
    std::thread keeper([&gate, count, openings] { gate.keep(count, openings); });
    for (auto &thread : threads) thread.join();
    keeper.join();
}
