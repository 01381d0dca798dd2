// Shacham et al. 2007, Fig. 4, between two large pieces of work: the first ends and the second begins with a read of the count.
#include "common.hpp"

constexpr int POOL = 120;
static std::mutex KeyLock, NumLock, DelLock;
int numDelItr, NumDeleted, compressions;
bool too_big[POOL], deleted[POOL];

static int deletions() {
    std::lock_guard<std::mutex> guard(NumLock);
    return NumDeleted;
}

static void client(int number, int threads, int size) {
    std::vector<std::uint32_t> own(128, static_cast<std::uint32_t>(number));
    private_work(own, size);
    int before = deletions();
    {
        std::lock_guard<std::mutex> guard(KeyLock);
        if (numDelItr % 5 == 4) compressions++;
    }
    int each = POOL / threads;
    for (int i = each * number; i < each * (number + 1); ++i) {
        if (i > each * number) calculate(24000000 / each);
        std::lock_guard<std::mutex> guard(NumLock);
        if (too_big[i]) {
            deleted[i] = true;
            ++NumDeleted;
        }
    }
    {
        std::lock_guard<std::mutex> guard(DelLock);
        ++numDelItr;
    }
    if (deletions() < before) std::abort();
    private_work(own, size);
}

int main(int count, char **words) {
    Arguments arguments(count, words, 1500);
    for (int i = 0; i < POOL; i += 3) too_big[i] = true;
    int threads = arguments.threads, size = arguments.size;
    run_threads(threads, [=](int number) { client(number, threads, size); });
    return NumDeleted > 0 ? 0 : 1;
}
