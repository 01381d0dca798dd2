// A ticket lock.
// Shows: threads that spin on an atomic until they are served, with and without yielding.
// True:  `serving` is stored with release and loaded with acquire; the log belongs to the thread that is served.
// expect: none
#include <atomic>
#include <cstdio>
#include <sched.h>
#include <thread>

static std::atomic<unsigned> next_ticket, serving;
static int log_entries[30], entries;

static void work(int me) {
    for (int i = 0; i < 10; i++) {
        unsigned ticket = next_ticket.fetch_add(1, std::memory_order_relaxed);
        while (serving.load(std::memory_order_acquire) != ticket)
            if (me != 0)
                sched_yield();
        log_entries[entries++] = me;
        serving.store(ticket + 1, std::memory_order_release);
    }
}

int main() {
    std::thread a(work, 0);
    std::thread b(work, 1);
    std::thread c(work, 2);
    a.join();
    b.join();
    c.join();
    for (int entry : log_entries)
        std::printf("%d", entry);
    std::printf("\n");
    return entries == 30 ? 0 : 1;
}
