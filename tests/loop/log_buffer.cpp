// bug: a line is copied into the log's buffer in one critical section, and the end of the log is moved in the next
// shows: atomicity-violation
#include <cstring>
#include <mutex>
#include <thread>

// After the access log of a web server whose buffered lines were mixed.
class Log {
public:
    void write(const char *line) {
        std::size_t length = std::strlen(line);
        std::unique_lock<std::mutex> held(mutex);
        for (std::size_t i = 0; i < length; i++) buffer[end + i] = line[i];
#ifndef FIXED
        held.unlock();
        held.lock();
#endif
        end += length;
    }

    bool is_whole() {
        std::lock_guard<std::mutex> held(mutex);
        for (std::size_t i = 0; i < end; i++) {
            if (buffer[i] == 0) return false;
        }
        return true;
    }

private:
    std::mutex mutex;
    char buffer[64] = {};
    std::size_t end = 0;
};

static Log access_log;

int main() {
    std::thread one([] { access_log.write("GET /one\n"); });
    std::thread other([] { access_log.write("GET /another\n"); });
    one.join();
    other.join();
    return access_log.is_whole() ? 0 : 1;
}
