// bug: a number is read by one atomic access and raised by another one, so that two messages bear the same
// shows: atomicity-violation
#include <atomic>
#include <set>
#include <thread>

static std::atomic<unsigned> next_number{1};

static unsigned take() {
#ifdef FIXED
    return next_number.fetch_add(1);
#else
    unsigned number = next_number.load();
    next_number.store(number + 1);
    return number;
#endif
}

struct Message {
    unsigned number = 0;
};

int main() {
    Message messages[2];
    std::thread one([&] { messages[0].number = take(); });
    std::thread other([&] { messages[1].number = take(); });
    one.join();
    other.join();
    std::set<unsigned> numbers = {messages[0].number, messages[1].number};
    return numbers.size() == 2 ? 0 : 1;
}
