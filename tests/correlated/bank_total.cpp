// bug: a transfer takes from one account and adds to the other in two critical sections; the auditor's total is wrong between
// shows: atomicity-violation
#include <cstdlib>
#include <mutex>
#include <thread>

class Bank {
public:
    void transfer(int from, int to, long amount) {
#ifdef FIXED
        std::lock_guard<std::recursive_mutex> whole(mutex);
#endif
        change(from, -amount);
        change(to, amount);
    }

    long total() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        long sum = 0;
        for (long balance : accounts) sum += balance;
        return sum;
    }

private:
    void change(int account, long amount) {
        std::lock_guard<std::recursive_mutex> held(mutex);
        accounts[account] += amount;
    }

    std::recursive_mutex mutex;
    long accounts[4] = {100, 100, 100, 100};
};

static Bank bank;

int main() {
    std::thread clerk([] { bank.transfer(0, 3, 30); });
    std::thread auditor([] {
        if (bank.total() != 400) std::abort();
    });
    clerk.join();
    auditor.join();
    return 0;
}
