// The test: a process computes, and sends its results through a buffer; another waits for messages, and shows the last one on a
// blackboard; a third looks at both. The argument is the amount of computation, 1 by default: two seconds or more.
#include "arinc.h"

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 6, MILLION = 1000000 };

static arinc_buffer measurements;
static arinc_blackboard display;
static arinc_health health;
static double amount = 1;

// A filter over a signal that is made up on the way.
static uint64_t compute(uint64_t seed, double share)
{
    uint64_t window[64] = { 0 }, sum = 0, state = seed;
    const uint64_t rounds = (uint64_t)(share * amount * 28 * MILLION);
    for (uint64_t round = 0; round < rounds; round++) {
        for (int step = 0; step < 32; step++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        window[round % 64] = state;
        sum += window[(round * 7 + 3) % 64] >> 32;
    }
    return sum;
}

static void *sender(void *unused)
{
    for (uint32_t number = 0; number < MESSAGES; number++) {
        uint64_t value = compute(number + 1, 0.8 / MESSAGES);
        arinc_buffer_send(&measurements, &value, sizeof value, number % 3);
        arinc_health_report(&health, 1, number % 4, value);
    }
    return unused;
}

static void *receiver(void *unused)
{
    uint64_t sum = 0;
    for (uint32_t number = 0; number < MESSAGES; number++) {
        uint64_t value = 0;
        uint32_t length = 0, priority = 0;
        arinc_buffer_receive(&measurements, &value, &length, &priority);
        sum += value * (priority + 1);
        arinc_blackboard_display(&display, &sum, sizeof sum, number);
        arinc_health_report(&health, 2, priority, sum);
    }
    sum += compute(sum | 1, 0.2);
    arinc_blackboard_display(&display, &sum, sizeof sum, MESSAGES);
    return unused;
}

static void *monitor(void *unused)
{
    uint64_t value, stamp = 0, sum = 0;
    uint32_t length;
    arinc_buffer_counts buffer;
    arinc_blackboard_counts board;
    while (stamp < MESSAGES) {
        arinc_blackboard_read(&display, &value, &length, &stamp);
        arinc_buffer_status(&measurements, &buffer);
        arinc_blackboard_status(&display, &board);
        sum += compute(value | 1, 0.02) + buffer.count + board.read;
        arinc_health_report(&health, 3, board.displayed, arinc_health_summary(&health));
    }
    arinc_blackboard_clear(&display);
    return (void *)(uintptr_t)(sum | 1);
}

int main(int arguments, char **argument)
{
    arinc_process processes[3];
    if (arguments > 1)
        amount = atof(argument[1]);
    arinc_buffer_create(&measurements, 2);
    arinc_blackboard_create(&display);
    arinc_process_start(&processes[0], sender, NULL);
    arinc_process_start(&processes[1], receiver, NULL);
    arinc_process_start(&processes[2], monitor, NULL);
    for (int process = 0; process < 3; process++)
        arinc_process_end(&processes[process]);
    printf("%u messages sent, %u received\n", measurements.sent, measurements.received);
    return measurements.sent == MESSAGES && measurements.received == MESSAGES ? 0 : 1;
}
