// What the programs of this folder share: arguments, random numbers, and work that no other thread sees.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

struct Random {
    std::uint64_t state;
    explicit Random(std::uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
    std::uint32_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>(state >> 33);
    }
    int below(int bound) { return static_cast<int>(next() % static_cast<std::uint32_t>(bound)); }
};

// Accesses to memory of the calling thread's own.
inline std::uint32_t private_work(std::vector<std::uint32_t> &own, int rounds) {
    std::uint32_t sum = 0;
    for (int round = 0; round < rounds; round++)
        for (std::size_t at = 1; at < own.size(); at++) {
            own[at] += own[at - 1] * 3 + 1;
            sum += own[at];
        }
    return sum;
}

// Work without an access. Between the accesses of a rare race it takes many times as long as one thread can be ahead of another.
inline void calculate(int rounds) {
    Random random(static_cast<std::uint64_t>(rounds));
    std::uint32_t sum = 0;
    for (int round = 0; round < rounds; round++) sum ^= random.next();
    asm volatile("" : : "r"(sum));
}

// Threads (default 2) and size of a run.
struct Arguments {
    int threads, size;
    Arguments(int count, char **words, int usual)
        : threads(count > 1 ? std::atoi(words[1]) : 2), size(count > 2 ? std::atoi(words[2]) : usual) {}
};

template <class Body> void run_threads(int count, Body body) {
    std::vector<std::thread> threads;
    for (int number = 0; number < count; number++) threads.emplace_back([=] { body(number); });
    for (auto &thread : threads) thread.join();
}
