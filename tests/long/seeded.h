// Twenty errors, each of which needs three to six accesses of different threads in one order. The order is drawn, and so is where
// in its work each thread makes its access: the same in every execution. Threads that make progress alike do not come in that
// order, nor does each as soon as the one created before it has ended. An error shows by the program's abort in a function of its
// own.
//
// Whoever includes this defines TOUCH(bug, nth): the nth access of an error, which calls fail(bug) when it was the last of the
// order and all others came before it in theirs.
#include <stdlib.h>

#define BUGS 20
#define MOST_ACCESSES 6

static struct {
    int thread, round;
} seeded[BUGS][MOST_ACCESSES];

static int accesses_of(int bug) { return 3 + bug % 4; }

static unsigned drawn;

static int draw(int below) {
    drawn = drawn * 1103515245 + 12345;
    return (int)((drawn >> 16) % (unsigned)below);
}

// `rounds` are those between two barriers; an error's accesses are in one of `phases`.
static void seed_bugs(unsigned seed, int threads, int phases, int rounds) {
    drawn = seed;
    for (int bug = 0; bug < BUGS; bug++) {
        int phase = draw(phases), taken[64] = {0}, falls = 0, rises = 0;
        for (int nth = 0; nth < accesses_of(bug); nth++) {
            int thread;
            do
                thread = draw(threads);
            while (taken[thread]);
            taken[thread] = 1;
            seeded[bug][nth].thread = thread;
            seeded[bug][nth].round = phase * rounds + draw(rounds);
            if (nth > 0) {
                falls += seeded[bug][nth - 1].round - seeded[bug][nth].round > rounds / 3;
                rises += seeded[bug][nth - 1].thread < thread;
            }
        }
        if (falls == 0 || rises == accesses_of(bug) - 1) bug--;
    }
}

#define FAIL(number) __attribute__((noinline)) static void fail_##number(void) { abort(); }
FAIL(0) FAIL(1) FAIL(2) FAIL(3) FAIL(4) FAIL(5) FAIL(6) FAIL(7) FAIL(8) FAIL(9)
FAIL(10) FAIL(11) FAIL(12) FAIL(13) FAIL(14) FAIL(15) FAIL(16) FAIL(17) FAIL(18) FAIL(19)

static void fail(int bug) {
    static void (*const all[BUGS])(void) = {fail_0,  fail_1,  fail_2,  fail_3,  fail_4,  fail_5,  fail_6,
                                            fail_7,  fail_8,  fail_9,  fail_10, fail_11, fail_12, fail_13,
                                            fail_14, fail_15, fail_16, fail_17, fail_18, fail_19};
    all[bug]();
}

#define TOUCH_ALL(of_thread, in_round)                                                                                 \
    for (int bug = 0; bug < BUGS; bug++)                                                                               \
        for (int nth = 0; nth < accesses_of(bug); nth++)                                                               \
            if (seeded[bug][nth].thread == (of_thread) && seeded[bug][nth].round == (in_round)) TOUCH(bug, nth)
