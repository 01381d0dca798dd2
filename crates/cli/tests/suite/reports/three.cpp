// Three transfers between three accounts, each under the locks of both: a cycle of three.
#include <mutex>
#include <thread>

struct Account { std::mutex lock; long balance = 100; };

struct Bank {
    Account accounts[3];
    void move(int from, int to, long amount) {
        std::lock_guard<std::mutex> one(accounts[from].lock);
        std::lock_guard<std::mutex> other(accounts[to].lock);
        accounts[from].balance -= amount;
        accounts[to].balance += amount;
    }
};

int main() {
    Bank *bank = new Bank;
    std::thread one([bank] { bank->move(0, 1, 5); });
    std::thread two([bank] { bank->move(1, 2, 5); });
    std::thread three([bank] { bank->move(2, 0, 5); });
    one.join();
    two.join();
    three.join();
    delete bank;
}
