// PrimeFinder: numbers of an interval are given out under a lock; primes go to a list under another. The largest prime is looked at under a third lock once, and written
// under the list's lock at a thread's end.
#include "common.hpp"
#include <algorithm>

static std::mutex number_lock, list_lock, hint_lock;
int next_number = 3, limit;
static std::vector<int> primes;
int largest, hints;

bool is_prime(int number, std::vector<int> &divisors) {
    for (std::size_t at = 0; at < divisors.size(); at++)
        if (divisors[at] * divisors[at] <= number && number % divisors[at] == 0) return false;
    return true;
}

int find(int numbers, std::vector<int> &divisors) {
    int own = 0;
    for (int done = 0; done < numbers; done++) {
        int number;
        {
            std::lock_guard<std::mutex> guard(number_lock);
            number = next_number < limit ? next_number : 2;
            next_number += 2;
        }
        if (number > 2 && is_prime(number, divisors)) {
            std::lock_guard<std::mutex> guard(list_lock);
            primes.push_back(number);
            own = number;
        }
    }
    return own;
}

static void search(int share) {
    std::vector<int> divisors;
    for (int divisor = 3; divisors.size() < 400; divisor += 2) divisors.push_back(divisor);
    int own = find(share, divisors);
    {
        std::lock_guard<std::mutex> guard(hint_lock);
        if (largest > limit / 2) hints++;
    }
    int later = find(60, divisors);
    std::lock_guard<std::mutex> guard(list_lock);
    largest = std::max(largest, std::max(own, later));
}

int main(int count, char **words) {
    Arguments arguments(count, words, 3000);
    limit = 2 * arguments.threads * (arguments.size + 60) + 3;
    int share = arguments.size;
    run_threads(arguments.threads, [share](int) { search(share); });
    return largest > 2 ? 0 : 1;
}
