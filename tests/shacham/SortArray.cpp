// SortArray: segments of an array are taken under a lock, sorted, and counted as sorted under another one by a thread that
// took part in two merges. When a thread is through its share it looks, under a third lock, at how many are sorted. The
// lock of the merges orders both accesses unless a thread takes part in them while another one stands before its look.
#include "gate.hpp"

constexpr int SEGMENT = 64;
static std::vector<int> numbers;
static std::mutex take_lock, look_lock, sorted_lock;
static Gate merges;
int next_segment, segments, sorted, looks;

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
    int done = 0;
    while (done < share && sort_next()) done++;
    merges.arrive();
    {
        std::lock_guard<std::mutex> guard(look_lock);
        if (sorted > segments / 2) looks++;
    }
    if (!merges.pass(2)) return;
    std::lock_guard<std::mutex> guard(sorted_lock);
    sorted += done;
}

int main(int count, char **words) {
    Arguments arguments(count, words, 300);
    int share = arguments.size / arguments.threads;
    segments = share * arguments.threads;
    numbers.resize(static_cast<std::size_t>(segments * SEGMENT));
    Random random(11);
    for (int &number : numbers) number = random.below(1 << 20);
    run_with(merges, 5, arguments.threads, [share](int) { sort_share(share); });
    return sorted <= segments ? 0 : 1;
}
