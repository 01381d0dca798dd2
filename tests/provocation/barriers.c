// As in a kernel: a producer and a consumer that use memory barriers only, and an interrupt handler on its own thread that runs
// while a mask word is clear. Barriers, the mask and all waiting are inline assembly, which no tool sees.
//
// RACE=1: the consumer does not mask the handler while it changes what both count.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#ifndef RACE
#define RACE 0
#endif

enum { SLOTS = 8, ITEMS = 200, INTERRUPTS = 50 };

static struct {
    uint64_t value;
    uint32_t kind;
} ring[SLOTS];
static int head, tail;       // only by load and store below
static int masked, running;  // the handler runs while masked is 0; running is 1 meanwhile
static int ended;
static uint64_t pending, handled, lost; // the handler's and, with the handler masked, the consumer's

static int load_acquire(int *word)
{
    int value;
    __asm__ volatile("mov %1, %0" : "=r"(value) : "m"(*word) : "memory");
    return value;
}

static void store_release(int *word, int value)
{
    __asm__ volatile("mov %1, %0" : "=m"(*word) : "r"(value) : "memory");
}

static int exchange(int *word, int value)
{
    __asm__ volatile("xchg %0, %1" : "+r"(value), "+m"(*word) : : "memory");
    return value;
}

static void pause_and_yield(void)
{
    long number = 24, result; // sched_yield
    __asm__ volatile("pause; syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
}

static void mask(void)
{
    // Two handlers cannot mask at once: only the consumer does. An exchange is a full barrier.
    exchange(&masked, 1);
    while (load_acquire(&running))
        pause_and_yield();
}

static void unmask(void)
{
    store_release(&masked, 0);
}

static void *handler(void *unused)
{
    for (int interrupt = 0; interrupt < INTERRUPTS; interrupt++) {
        for (;;) {
            exchange(&running, 1);
            if (!load_acquire(&masked))
                break;
            store_release(&running, 0);
            pause_and_yield();
        }
        pending++;
        if (pending > 3)
            lost++;
        store_release(&running, 0);
        pause_and_yield();
    }
    return unused;
}

static void *producer(void *unused)
{
    for (int item = 0; item < ITEMS; item++) {
        while (load_acquire(&head) - load_acquire(&tail) == SLOTS)
            pause_and_yield();
        ring[item % SLOTS].value = (uint64_t)item * item;
        ring[item % SLOTS].kind = item % 3;
        store_release(&head, item + 1);
    }
    store_release(&ended, 1);
    return unused;
}

static void *consumer(void *unused)
{
    uint64_t sum = 0;
    for (int item = 0; item < ITEMS; item++) {
        while (load_acquire(&head) == item)
            pause_and_yield();
        sum += ring[item % SLOTS].value + ring[item % SLOTS].kind;
        store_release(&tail, item + 1);
        if (item % 4 == 3) {
#if RACE != 1
            mask();
#endif
            handled += pending;
            pending = 0;
#if RACE != 1
            unmask();
#endif
        }
    }
    return (void *)(uintptr_t)(sum & 0xff);
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, handler, NULL);
    pthread_create(&threads[1], NULL, producer, NULL);
    pthread_create(&threads[2], NULL, consumer, NULL);
    for (int thread = 0; thread < 3; thread++)
        pthread_join(threads[thread], NULL);
    printf("%d\n", handled + pending == INTERRUPTS);
    return 0;
}
