// bug: who pauses what runs does not look again; what was stopped in between is paused, and goes on later
// shows: atomicity-violation
#include <cstdio>
#include <mutex>
#include <thread>

enum class State { Running, Paused, Stopped };

class Engine {
public:
    void pause() {
        std::unique_lock<std::mutex> held(mutex);
        bool running = state == State::Running;
#ifndef FIXED
        held.unlock();
        held.lock();
#endif
        if (running) state = State::Paused;
    }

    void stop() {
        std::lock_guard<std::mutex> held(mutex);
        state = State::Stopped;
    }

    const char *word() {
        std::lock_guard<std::mutex> held(mutex);
        return state == State::Running ? "running" : state == State::Paused ? "paused" : "stopped";
    }

private:
    std::mutex mutex;
    State state = State::Running;
};

int main() {
    Engine engine;
    std::thread one([&engine] { engine.pause(); });
    std::thread other([&engine] { engine.stop(); });
    one.join();
    other.join();
    std::printf("%s\n", engine.word());
}
