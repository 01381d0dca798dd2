// C++: parallel quicksort as tasks on a pool of std::thread; tasks are std::function, the pool is a std::deque under a
// std::mutex and a std::condition_variable, a shared_ptr keeps the data alive while tasks refer to it.
// Usage: sorter [LENGTH [THREADS]]
// Check: the result is ordered and has the sum and the sum of squares of the input.
// Race-free: tasks own disjoint ranges; a range is handed over through the pool's mutex.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

class Pool {
public:
    using Task = std::function<void()>;

    void submit(Task task) {
        std::lock_guard<std::mutex> guard(lock_);
        tasks_.push_back(std::move(task));
        unfinished_++;
        changed_.notify_one();
    }

    // Works until no task is left anywhere.
    void work() {
        std::unique_lock<std::mutex> guard(lock_);
        while (unfinished_ > 0) {
            if (tasks_.empty()) {
                changed_.wait(guard);
                continue;
            }
            Task task = std::move(tasks_.back());
            tasks_.pop_back();
            guard.unlock();
            task();
            task = nullptr;
            guard.lock();
            if (--unfinished_ == 0)
                changed_.notify_all();
        }
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;
    std::size_t unfinished_ = 0;
};

using Data = std::vector<std::uint32_t>;

constexpr std::size_t SMALL = 24, SERIAL = 2048;

void insertion_sort(Data &data, std::size_t first, std::size_t end) {
    for (std::size_t i = first + 1; i < end; i++) {
        const auto value = data[i];
        std::size_t hole = i;
        for (; hole > first && data[hole - 1] > value; hole--)
            data[hole] = data[hole - 1];
        data[hole] = value;
    }
}

// Returns the end of the left part, both parts being shorter than the range.
std::size_t partition(Data &data, std::size_t first, std::size_t end) {
    const std::size_t middle = first + (end - first) / 2, last = end - 1;
    if (data[middle] < data[first])
        std::swap(data[middle], data[first]);
    if (data[last] < data[first])
        std::swap(data[last], data[first]);
    if (data[last] < data[middle])
        std::swap(data[last], data[middle]);
    const auto pivot = data[middle];
    std::size_t left = first, right = last;
    while (true) {
        while (data[left] < pivot)
            left++;
        while (pivot < data[right])
            right--;
        if (left >= right)
            return right + 1;
        std::swap(data[left++], data[right--]);
    }
}

void sort_range(Pool &pool, const std::shared_ptr<Data> &data, std::size_t first, std::size_t end) {
    while (end - first > SMALL) {
        const std::size_t split = partition(*data, first, end);
        if (end - first > SERIAL)
            pool.submit([&pool, data, first, split] { sort_range(pool, data, first, split); });
        else
            sort_range(pool, data, first, split);
        first = split;
    }
    insertion_sort(*data, first, end);
}

std::pair<std::uint64_t, std::uint64_t> sums(const Data &data) {
    std::pair<std::uint64_t, std::uint64_t> result{0, 0};
    for (const auto value : data) {
        result.first += value;
        result.second += std::uint64_t{value} * value;
    }
    return result;
}

} // namespace

int main(int count, char **arguments) {
    const std::size_t length = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 3000000;
    const std::size_t threads = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 4;
    if (length == 0 || threads == 0 || threads > 64)
        return 2;
    auto data = std::make_shared<Data>(length);
    std::uint64_t state = 88172645463325252u;
    for (auto &value : *data) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value = static_cast<std::uint32_t>(state);
    }
    const auto expected = sums(*data);
    Pool pool;
    pool.submit([&pool, data] { sort_range(pool, data, 0, data->size()); });
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < threads; i++)
        workers.emplace_back([&pool] { pool.work(); });
    for (auto &worker : workers)
        worker.join();
    bool right = sums(*data) == expected;
    for (std::size_t i = 1; i < length; i++)
        right &= (*data)[i - 1] <= (*data)[i];
    std::printf("sorter of %zu with %zu threads: %s\n", length, threads, right ? "right" : "WRONG");
    return right ? 0 : 1;
}
