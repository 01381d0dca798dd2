// A lock-free stack.
// Shows: compare-and-exchange loops on a pointer; the order of pops tells the schedule.
// True:  nodes live until all threads have been joined, so no address comes back (no ABA) and none dangles.
// expect: none
#include <atomic>
#include <cstdio>
#include <thread>

struct Node {
    int value;
    Node *next;
};

static Node nodes[30];
static std::atomic<Node *> top;
static int popped[3];

static void work(int me) {
    for (int i = 0; i < 10; i++) {
        Node *node = &nodes[me * 10 + i];
        node->value = me * 10 + i;
        Node *seen = top.load(std::memory_order_relaxed);
        do
            node->next = seen;
        while (!top.compare_exchange_weak(seen, node, std::memory_order_release, std::memory_order_relaxed));
    }
    for (int i = 0; i < 5; i++) {
        Node *node = top.load(std::memory_order_acquire);
        while (!top.compare_exchange_weak(node, node->next, std::memory_order_acquire, std::memory_order_acquire)) {
        }
        popped[me] += node->value;
    }
}

int main() {
    std::thread a(work, 0);
    std::thread b(work, 1);
    std::thread c(work, 2);
    a.join();
    b.join();
    c.join();
    int left = 0, sum = popped[0] + popped[1] + popped[2];
    for (Node *node = top; node != nullptr; node = node->next) {
        std::printf("%d ", node->value);
        sum += node->value;
        left++;
    }
    std::printf("\n");
    return left == 15 && sum == 29 * 30 / 2 ? 0 : 1;
}
