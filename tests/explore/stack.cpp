// ABA: a lock-free stack whose nodes are used again at once.
#include <atomic>
#include <cassert>
#include <thread>
struct Node { int next; std::atomic<int> taken{0}; };
Node nodes[3];
std::atomic<int> top{-1};
static void push(int node) { int old = top.load(); do nodes[node].next = old; while (!top.compare_exchange_strong(old, node)); }
static int pop() {
    int old = top.load();
    while (old >= 0 && !top.compare_exchange_strong(old, nodes[old].next)) {}
    return old;
}
static void take(int node) { if (node >= 0) assert(nodes[node].taken.fetch_add(1) == 0); }
static void give(int node) { if (node >= 0) { nodes[node].taken--; push(node); } }
int main() {
    for (int node = 0; node < 3; node++) push(node);
    std::thread a([] { take(pop()); });
    std::thread b([] { int one = pop(); take(one); int two = pop(); take(two); give(one); });
    a.join(); b.join();
    take(pop()); take(pop());
}
