// std::shared_mutex.
// Shows: readers and writers of a std::map.
// True:  the map changes under the exclusive lock only.
// expect: none
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex m;
static std::map<int, int> squares;

static void insert_ten(int first) {
    for (int i = first; i < first + 10; i++) {
        std::unique_lock<std::shared_mutex> guard(m);
        squares[i] = i * i;
    }
}

static void look_up(int *wrong) {
    for (int i = 0; i < 20; i++) {
        std::shared_lock<std::shared_mutex> guard(m);
        auto entry = squares.find(i);
        *wrong += entry != squares.end() && entry->second != i * i;
    }
}

int main() {
    int wrong[2] = {0, 0};
    std::thread a(insert_ten, 0);
    std::thread b(insert_ten, 10);
    std::thread c(look_up, &wrong[0]);
    std::thread d(look_up, &wrong[1]);
    a.join();
    b.join();
    c.join();
    d.join();
    return squares.size() == 20 && wrong[0] + wrong[1] == 0 ? 0 : 1;
}
