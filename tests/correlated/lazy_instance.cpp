// bug: whether there is an instance is asked under the lock, and it is made under the lock, but not under the same
// shows: atomicity-violation
#include <memory>
#include <mutex>
#include <thread>

static int made;

struct Settings {
    Settings() { made++; }
    int verbosity = 1;
};

class Registry {
public:
    Settings &settings() {
#ifdef FIXED
        std::lock_guard<std::recursive_mutex> whole(mutex);
#endif
        if (!exists()) create();
        std::lock_guard<std::recursive_mutex> held(mutex);
        return *instance;
    }

private:
    bool exists() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        return instance != nullptr;
    }

    void create() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        // The old ones are kept: who has one may use it.
        previous = std::move(instance);
        instance = std::make_unique<Settings>();
    }

    std::recursive_mutex mutex;
    std::unique_ptr<Settings> instance, previous;
};

static Registry registry;

int main() {
    std::thread one([] { registry.settings(); }), other([] { registry.settings(); });
    one.join();
    other.join();
    return made == 1 ? 0 : 1;
}
