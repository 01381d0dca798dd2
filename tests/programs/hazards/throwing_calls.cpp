// Initialisation and allocation that are left by an exception.
// Shows: a static whose constructor throws twice before it succeeds, in three threads, and new that fails, with and without
//        throwing.
// True:  one thread at a time is in the constructor; each later attempt happens after the one that threw.
// expect: none
#include <cstdint>
#include <new>
#include <thread>

static int constructions;

struct Thing {
    int value;
    Thing() {
        if (++constructions < 3)
            throw 1;
        value = 9;
    }
};

static void use_static(bool *good) {
    for (;;) {
        try {
            static Thing thing;
            *good = thing.value == 9;
            return;
        } catch (int) {
        }
    }
}

static void allocate(bool *good) {
    volatile std::size_t huge = SIZE_MAX / 4;
    try {
        ::operator delete(::operator new(huge));
    } catch (const std::bad_alloc &) {
        *good = ::operator new(huge, std::nothrow) == nullptr;
    }
}

static bool in_three_threads(void (*work)(bool *)) {
    bool good[3] = {};
    std::thread a(work, &good[0]), b(work, &good[1]), c(work, &good[2]);
    a.join();
    b.join();
    c.join();
    return good[0] && good[1] && good[2];
}

int main() {
    if (!in_three_threads(use_static) || constructions != 3)
        return 1;
    return in_three_threads(allocate) ? 0 : 2;
}
