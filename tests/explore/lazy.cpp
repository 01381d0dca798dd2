// Atomicity violation: two threads initialise a singleton.
#include <atomic>
#include <cassert>
#include <thread>
std::atomic<int *> instance{nullptr};
std::atomic<int> made{0};
static void use() { if (instance.load() == nullptr) { made++; instance.store(new int(1)); } }
int main() { std::thread a(use), b(use); a.join(); b.join(); assert(made == 1); }
