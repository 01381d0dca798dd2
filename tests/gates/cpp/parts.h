// What the tests of `cases.inc` test. Each BUG_… puts one bug in.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

// Sum and largest of what was measured.
class Statistics {
    mutable std::mutex lock;
    long total = 0;
    long largest = 0;

public:
    void add(long value) {
#ifdef BUG_RACE
        if (value > largest)
            largest = value;
        std::lock_guard<std::mutex> guard(lock);
#else
        std::lock_guard<std::mutex> guard(lock);
        if (value > largest)
            largest = value;
#endif
        total += value;
    }
    long sum() const {
        std::lock_guard<std::mutex> guard(lock);
        return total;
    }
    long maximum() const {
        std::lock_guard<std::mutex> guard(lock);
        return largest;
    }
};

class Account {
public:
    std::mutex lock;
    long balance;
    explicit Account(long balance) : balance(balance) {}
};

inline void transfer(Account &from, Account &to, long amount) {
#ifdef BUG_DEADLOCK
    std::lock_guard<std::mutex> first(from.lock);
    std::lock_guard<std::mutex> second(to.lock);
#else
    std::scoped_lock both(from.lock, to.lock);
#endif
    from.balance -= amount;
    to.balance += amount;
}

// Values that are made once.
class Cache {
    std::mutex lock;
    std::map<int, std::string> values;
    int made = 0;

    bool has(int key) {
        std::lock_guard<std::mutex> guard(lock);
        return values.count(key) != 0;
    }

public:
    void need(int key) {
#ifdef BUG_ATOMICITY
        if (has(key))
            return;
        std::lock_guard<std::mutex> guard(lock);
#else
        std::lock_guard<std::mutex> guard(lock);
        if (values.count(key))
            return;
#endif
        values[key] = std::to_string(key);
        made++;
    }
    int count() {
        std::lock_guard<std::mutex> guard(lock);
        return made;
    }
    bool hit(int key) { return has(key); }
};

// Opens once, for all who wait.
class Event {
    std::mutex lock;
    std::condition_variable opened;
    std::atomic<bool> is_open{false};

public:
    void open() {
#ifndef BUG_WAKE_UP
        std::lock_guard<std::mutex> guard(lock);
#endif
        is_open = true;
        opened.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> guard(lock);
        while (!is_open)
            opened.wait(guard);
    }
};

struct Settings {
    int width;
    int height;
};

// The settings that hold, replaced as a whole.
class Registry {
    std::mutex lock;
#ifdef BUG_LIFETIME
    Settings *current = new Settings{1, 1};

public:
    ~Registry() { delete current; }
    int area() {
        Settings *settings;
        {
            std::lock_guard<std::mutex> guard(lock);
            settings = current;
        }
        return settings->width * settings->height;
    }
    void replace(int width, int height) {
        std::lock_guard<std::mutex> guard(lock);
        delete current;
        current = new Settings{width, height};
    }
#else
    std::shared_ptr<Settings> current = std::make_shared<Settings>(Settings{1, 1});

public:
    int area() {
        std::shared_ptr<Settings> settings;
        {
            std::lock_guard<std::mutex> guard(lock);
            settings = current;
        }
        return settings->width * settings->height;
    }
    void replace(int width, int height) {
        auto settings = std::make_shared<Settings>(Settings{width, height});
        std::lock_guard<std::mutex> guard(lock);
        current = settings;
    }
#endif
};

class Queue {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<int> items;
    size_t room;
    bool closed = false;

public:
    explicit Queue(size_t room) : room(room) {}
    void push(int item) {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [&] { return items.size() < room; });
        items.push_back(item);
        changed.notify_all();
    }
    // Nothing: the queue is closed, and empty.
    bool pop(int &item) {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [&] { return closed || !items.empty(); });
        if (items.empty())
            return false;
        item = items.front();
        items.pop_front();
        changed.notify_all();
        return true;
    }
    void close() {
        std::lock_guard<std::mutex> guard(lock);
        closed = true;
        changed.notify_all();
    }
};

// One writer, one reader, no lock.
class Ring {
    static constexpr unsigned SLOTS = 4;
    int slots[SLOTS] = {};
    std::atomic<unsigned> written{0};
    std::atomic<unsigned> taken{0};

public:
    bool push(int item) {
        unsigned at = written.load(std::memory_order_relaxed);
        if (at - taken.load(std::memory_order_acquire) == SLOTS)
            return false;
        slots[at % SLOTS] = item;
        written.store(at + 1, std::memory_order_release);
        return true;
    }
    bool pop(int &item) {
        unsigned at = taken.load(std::memory_order_relaxed);
        if (at == written.load(std::memory_order_acquire))
            return false;
        item = slots[at % SLOTS];
        taken.store(at + 1, std::memory_order_release);
        return true;
    }
};

class Table {
    mutable std::shared_mutex lock;
    std::map<std::string, int> rows;

public:
    void set(const std::string &name, int value) {
        std::unique_lock<std::shared_mutex> guard(lock);
        rows[name] = value;
    }
    int get(const std::string &name) const {
        std::shared_lock<std::shared_mutex> guard(lock);
        auto found = rows.find(name);
        return found == rows.end() ? -1 : found->second;
    }
};

template <class One, class Other> void both(One one, Other other) {
    std::thread thread(one);
    other();
    thread.join();
}
