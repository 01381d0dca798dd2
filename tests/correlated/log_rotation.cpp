// bug: the log is closed in one critical section and opened in the next; an entry that comes between is dropped
// shows: atomicity-violation
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// After the binary log of a database: what was committed during a rotation was missing on the replica.
class BinaryLog {
public:
    void rotate() {
#ifdef FIXED
        std::lock_guard<std::recursive_mutex> whole(mutex);
#endif
        close();
        open();
    }

    void write(const std::string &entry) {
        std::lock_guard<std::recursive_mutex> held(mutex);
        if (!is_open) return;
        files.back().push_back(entry);
    }

    std::size_t entries() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        std::size_t all = 0;
        for (const auto &file : files) all += file.size();
        return all;
    }

private:
    void close() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        is_open = false;
    }

    void open() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        files.emplace_back();
        is_open = true;
    }

    std::recursive_mutex mutex;
    bool is_open = true;
    std::vector<std::vector<std::string>> files = std::vector<std::vector<std::string>>(1);
};

static BinaryLog binary_log;

int main() {
    std::thread client([] {
        binary_log.write("insert 1");
        binary_log.write("insert 2");
    });
    std::thread rotation([] { binary_log.rotate(); });
    client.join();
    rotation.join();
    return binary_log.entries() == 2 ? 0 : 1;
}
