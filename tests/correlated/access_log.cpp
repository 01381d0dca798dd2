// bug: the end of the log's buffer is read in one critical section and moved in the next, so that two lines share their bytes
// shows: atomicity-violation
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

// After the access log of a web server that buffers lines: entries were mixed and lost under load.
class BufferedLog {
public:
    void transaction(const std::string &line) {
#ifdef FIXED
        std::lock_guard<std::recursive_mutex> whole(mutex);
#endif
        if (used() + line.size() > sizeof buffer) flush();
        std::size_t at = used();
        append(at, line);
    }

    std::size_t used() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        return outcnt;
    }

    void flush() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        written.append(buffer, outcnt);
        outcnt = 0;
    }

    std::string text() {
        flush();
        return written;
    }

private:
    void append(std::size_t at, const std::string &line) {
        std::lock_guard<std::recursive_mutex> held(mutex);
        std::memcpy(buffer + at, line.data(), line.size());
        outcnt = at + line.size();
    }

    std::recursive_mutex mutex;
    char buffer[4096];
    std::size_t outcnt = 0;
    std::string written;
};

static BufferedLog access_log;

static void serve(const char *path) {
    access_log.transaction(std::string("GET ") + path + "\n");
}

int main() {
    std::thread one(serve, "/index"), other(serve, "/style");
    one.join();
    other.join();
    std::string text = access_log.text();
    bool whole = text.find("/index\n") != std::string::npos && text.find("/style\n") != std::string::npos;
    return whole ? 0 : 1;
}
