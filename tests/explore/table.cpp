// Atomicity violation: of three threads two see a free slot and take it; the third makes it rare.
#include <cassert>
#include <mutex>
#include <thread>
std::mutex m;
int slots[2], overwritten;
static int find() { std::lock_guard<std::mutex> g(m); return slots[0] == 0 ? 0 : slots[1] == 0 ? 1 : -1; }
static void claim(int owner) { int slot = find(); if (slot < 0) return; std::lock_guard<std::mutex> g(m);
    if (slots[slot]) overwritten++; slots[slot] = owner; }
int main() {
    std::thread a([] { claim(1); }), b([] { claim(2); }), c([] { claim(3); });
    a.join(); b.join(); c.join();
    assert(overwritten < 2);
}
