// bug: every two thousandth row is announced without the lock that whoever reads announcements holds
// Ten million accesses that a recorder cannot leave out, since the last lock makes each a new one: four threads sum the rows of
// a table under the rows' locks.
#include <pthread.h>
#include <stdio.h>

#define THREADS 4
#ifndef ROUNDS
#define ROUNDS 20000
#endif
#define ROWS 64
#define CELLS 64
#define ANNOUNCED 2000

static struct {
    pthread_mutex_t lock;
    unsigned cells[CELLS];
} table[ROWS];

static pthread_mutex_t announcing = PTHREAD_MUTEX_INITIALIZER;
static unsigned announced;

static void sum(unsigned row) {
    pthread_mutex_lock(&table[row].lock);
    unsigned carry = row;
    for (int cell = 0; cell < CELLS; cell++) carry = table[row].cells[cell] += carry * 5 + 1;
    pthread_mutex_unlock(&table[row].lock);
}

static void announce(unsigned row) { announced = row; }

static unsigned last_announced(void) {
    pthread_mutex_lock(&announcing);
    unsigned row = announced;
    pthread_mutex_unlock(&announcing);
    return row;
}

static void *work(void *argument) {
    unsigned self = (unsigned)(long)argument, drawn = self, seen = 0;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        drawn = drawn * 1103515245 + 12345;
        unsigned row = drawn >> 16 & (ROWS - 1);
        sum(row);
        if (round % ANNOUNCED != self * (ANNOUNCED / THREADS)) continue;
        if (self == 0)
            announce(row);
        else
            seen += last_announced();
    }
    return (void *)(long)seen;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int row = 0; row < ROWS; row++) pthread_mutex_init(&table[row].lock, NULL);
    for (long nth = 0; nth < THREADS; nth++) pthread_create(&threads[nth], NULL, work, (void *)nth);
    for (int nth = 0; nth < THREADS; nth++) pthread_join(threads[nth], NULL);
    unsigned total = 0;
    for (int row = 0; row < ROWS; row++) total += table[row].cells[CELLS - 1];
    return total == 0;
}
