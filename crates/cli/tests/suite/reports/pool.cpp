// A pool of std::function tasks, two of which count in a variable of main's.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int threads) {
        for (int i = 0; i < threads; i++) threads_.emplace_back([this] { run(); });
    }
    ~Pool() {
        { std::lock_guard<std::mutex> lock(mutex_); stop_ = true; }
        filled_.notify_all();
        for (auto &thread : threads_) thread.join();
    }
    void submit(std::function<void()> task) {
        { std::lock_guard<std::mutex> lock(mutex_); tasks_.push_back(std::move(task)); }
        filled_.notify_one();
    }

private:
    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            filled_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            lock.lock();
        }
    }
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> tasks_;
    bool stop_ = false;
    std::vector<std::thread> threads_;
};

int main() {
    long counted = 0;
    {
        Pool pool(2);
        for (int i = 0; i < 2; i++) pool.submit([&counted] { counted++; });
    }
    return counted == 0;
}
