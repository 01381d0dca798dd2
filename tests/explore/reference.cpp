// Atomicity violation: a count of references is lowered and looked at in two steps; both owners may find it zero.
#include <atomic>
#include <cassert>
#include <thread>
std::atomic<int> references{2}, deleted{0};
static void drop() { references--; if (references.load() == 0) deleted++; }
int main() { std::thread a(drop), b(drop); a.join(); b.join(); assert(deleted == 1); }
