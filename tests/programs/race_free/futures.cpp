// std::async, std::promise, std::packaged_task.
// Shows: results handed over through shared states, whose waiting is done by the library with system calls.
// True:  get() is ordered behind the setting of the value.
// expect: none
#include <future>
#include <thread>
#include <vector>

static int sum(const std::vector<int> &numbers) {
    int total = 0;
    for (int number : numbers)
        total += number;
    return total;
}

int main() {
    std::vector<int> numbers{1, 2, 3, 4};
    std::future<int> total = std::async(std::launch::async, sum, std::cref(numbers));

    std::promise<std::vector<int>> promise;
    std::future<std::vector<int>> promised = promise.get_future();
    std::thread keeper([&promise] { promise.set_value({5, 6}); });

    std::packaged_task<int(int)> task([](int n) { return n * n; });
    std::future<int> square = task.get_future();
    std::thread runner(std::move(task), 7);

    int result = total.get() + sum(promised.get()) + square.get();
    keeper.join();
    runner.join();
    return result == 10 + 11 + 49 ? 0 : 1;
}
