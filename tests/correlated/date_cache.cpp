// bug: the second that is cached and its text are set in two critical sections; a request between them gets the text of another
// second
// shows: atomicity-violation
#include <cassert>
#include <mutex>
#include <string>
#include <thread>

// After the date cache of a web server's log.
class DateCache {
public:
    void advance(long second) {
#ifdef FIXED
        std::lock_guard<std::recursive_mutex> whole(mutex);
#endif
        set_second(second);
        set_text(second);
    }

    bool lookup(long second, std::string &text) {
        std::lock_guard<std::recursive_mutex> held(mutex);
        if (cached != second) return false;
        text = formatted;
        return true;
    }

private:
    void set_second(long second) {
        std::lock_guard<std::recursive_mutex> held(mutex);
        cached = second;
    }

    void set_text(long second) {
        std::lock_guard<std::recursive_mutex> held(mutex);
        formatted = "second " + std::to_string(second);
    }

    std::recursive_mutex mutex;
    long cached = 1;
    std::string formatted = "second 1";
};

static DateCache dates;

int main() {
    std::thread clock([] { dates.advance(2); });
    std::thread request([] {
        std::string text;
        if (dates.lookup(2, text)) assert(text == "second 2");
    });
    clock.join();
    request.join();
    return 0;
}
