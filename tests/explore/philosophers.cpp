// Deadlock: four philosophers, each takes the left fork first.
#include <mutex>
#include <thread>
#include <vector>
std::mutex forks[4];
int main() {
    std::vector<std::thread> table;
    for (int seat = 0; seat < 4; seat++)
        table.emplace_back([seat] {
            std::lock_guard<std::mutex> left(forks[seat]);
            std::lock_guard<std::mutex> right(forks[(seat + 1) % 4]);
        });
    for (auto &philosopher : table) philosopher.join();
}
