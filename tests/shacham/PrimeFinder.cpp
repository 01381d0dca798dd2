// PrimeFinder: numbers of an interval are given out under a lock; primes go to a list under another. The largest prime is
// looked at under a third lock when a thread has no numbers left, and written under the list's lock by a thread whose
// primes were collected twice. The collector's lock orders both accesses unless a thread's primes are collected while
// another one stands before its look.
#include "gate.hpp"
#include <algorithm>

static std::mutex number_lock, list_lock, hint_lock;
int next_number = 3, limit;
static std::vector<int> primes;
static Gate collection;
int largest, hints;

static bool is_prime(int number, std::vector<int> &divisors) {
    for (std::size_t at = 0; at < divisors.size(); at++)
        if (divisors[at] * divisors[at] <= number && number % divisors[at] == 0) return false;
    return true;
}

// All primes below the end, together with the other threads; the largest of this thread's.
static int find(int end, std::vector<int> &divisors) {
    int own = 0;
    for (;;) {
        int number;
        {
            std::lock_guard<std::mutex> guard(number_lock);
            if (next_number >= end) return own;
            number = next_number;
            next_number += 2;
        }
        if (is_prime(number, divisors)) {
            std::lock_guard<std::mutex> guard(list_lock);
            primes.push_back(number);
            own = number;
        }
    }
}

static void search() {
    std::vector<int> divisors;
    for (int divisor = 3; divisors.size() < 400; divisor += 2) divisors.push_back(divisor);
    int own = find(limit, divisors);
    collection.arrive();
    {
        std::lock_guard<std::mutex> guard(hint_lock);
        if (largest > limit / 2) hints++;
    }
    if (!collection.pass(2)) return;
    std::lock_guard<std::mutex> guard(list_lock);
    largest = std::max(largest, own);
}

int main(int count, char **words) {
    Arguments arguments(count, words, 16000);
    limit = 2 * arguments.size + 3;
    run_with(collection, 8, arguments.threads, [](int) { search(); });
    return primes.empty();
}
