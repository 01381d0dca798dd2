// bug: an entry is put into the list in one critical section and counted in the next; a clear between them leaves a count of one
// for an empty list
// shows: atomicity-violation
#include <list>
#include <mutex>
#include <string>
#include <thread>

class Cache {
public:
    void put(const std::string &key) {
#ifdef FIXED
        std::lock_guard<std::recursive_mutex> whole(mutex);
#endif
        {
            std::lock_guard<std::recursive_mutex> held(mutex);
            recent.push_front(key);
        }
        std::lock_guard<std::recursive_mutex> held(mutex);
        size++;
    }

    void clear() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        recent.clear();
        size = 0;
    }

    bool is_sound() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        return size == recent.size();
    }

private:
    std::recursive_mutex mutex;
    std::list<std::string> recent;
    std::size_t size = 0;
};

static Cache cache;

int main() {
    std::thread user([] { cache.put("page"); });
    std::thread reset([] { cache.clear(); });
    user.join();
    reset.join();
    return cache.is_sound() ? 0 : 1;
}
