// bug: whether a connection is idle is asked in one critical section, and the connection taken in the next
// shows: atomicity-violation
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int size) {
        for (int i = 0; i < size; i++) idle.push_back(i + 1);
    }

    int take() {
#ifdef FIXED
        std::lock_guard<std::recursive_mutex> whole(mutex);
#endif
        if (!has_idle()) return 0;
        std::lock_guard<std::recursive_mutex> held(mutex);
        if (idle.empty()) throw std::logic_error("a connection that is not there");
        int connection = idle.back();
        idle.pop_back();
        return connection;
    }

private:
    bool has_idle() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        return !idle.empty();
    }

    std::recursive_mutex mutex;
    std::vector<int> idle;
};

static Pool pool(1);

int main() {
    std::thread one([] { pool.take(); }), other([] { pool.take(); });
    one.join();
    other.join();
    return 0;
}
