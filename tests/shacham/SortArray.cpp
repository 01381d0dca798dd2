// SortArray: segments of an array are taken under a lock, sorted, and counted as sorted under another one. When a thread is through most of its share it looks, under a third
// lock, at how many are sorted. Right before and right after both, it looks at how many are left, and the lock of taking thus orders them, unless one thread stands between its two
// looks while another one does.
#include "common.hpp"

constexpr int SEGMENT = 64;
static std::vector<int> numbers;
static std::mutex take_lock, look_lock, sorted_lock;
int next_segment, segments, sorted, looks;

static int left() {
    std::lock_guard<std::mutex> guard(take_lock);
    return segments - next_segment;
}

static bool sort_next() {
    int segment;
    {
        std::lock_guard<std::mutex> guard(take_lock);
        segment = next_segment < segments ? next_segment++ : -1;
    }
    if (segment < 0) return false;
    int *from = &numbers[static_cast<std::size_t>(segment * SEGMENT)];
    for (int end = 1; end < SEGMENT; end++)
        for (int at = end; at > 0 && from[at - 1] > from[at]; at--) std::swap(from[at - 1], from[at]);
    return true;
}

static void sort_share(int share) {
    for (int done = 0; done < share; done++) sort_next();
    int before = left();
    {
        std::lock_guard<std::mutex> guard(look_lock);
        if (sorted > segments / 2) looks++;
    }
    if (left() > before) std::abort();
    for (int done = 0; done < 60; done++) {
        sort_next();
        calculate(400000);
    }
    before = left();
    {
        std::lock_guard<std::mutex> guard(sorted_lock);
        sorted += share + 60;
    }
    if (left() > before) std::abort();
}

int main(int count, char **words) {
    Arguments arguments(count, words, 120);
    segments = (arguments.size + 60) * arguments.threads;
    numbers.resize(static_cast<std::size_t>(segments * SEGMENT));
    Random random(11);
    for (int &number : numbers) number = random.below(1 << 20);
    int share = arguments.size;
    run_threads(arguments.threads, [share](int) { sort_share(share); });
    return sorted == segments ? 0 : 1;
}
