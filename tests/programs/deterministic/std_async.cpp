// std::async, recursively.
// Shows: threads made by the library, which wait for each other through futures.
// True:  each half of the range is sorted by one task; the merge follows both.
// expect: none
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <iterator>
#include <vector>

static std::atomic<int> tasks;

static void sort(std::vector<int>::iterator first, std::vector<int>::iterator last) {
    std::printf("task %d: %d numbers\n", tasks.fetch_add(1), static_cast<int>(last - first));
    if (last - first <= 16) {
        std::sort(first, last);
        return;
    }
    auto middle = first + (last - first) / 2;
    std::future<void> left = std::async(std::launch::async, sort, first, middle);
    sort(middle, last);
    left.get();
    std::vector<int> merged;
    std::merge(first, middle, middle, last, std::back_inserter(merged));
    std::copy(merged.begin(), merged.end(), first);
}

int main() {
    std::vector<int> numbers;
    for (int i = 0; i < 100; i++)
        numbers.push_back(i * 37 % 101);
    sort(numbers.begin(), numbers.end());
    return std::is_sorted(numbers.begin(), numbers.end()) ? 0 : 1;
}
