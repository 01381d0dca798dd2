#include "arinc.h"

#include <string.h>

enum { SPINS = 64, FUTEX = 202, FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

static long futex(int *word, long operation, long value)
{
    long result;
    register long timeout __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)FUTEX), "D"(word), "S"(operation), "d"(value), "r"(timeout)
                     : "rcx", "r11", "memory");
    return result;
}

static int exchange(int *word, int value)
{
    __asm__ volatile("xchg %0, %1" : "+r"(value), "+m"(*word) : : "memory");
    return value;
}

static int load(int *word)
{
    int value;
    __asm__ volatile("mov %1, %0" : "=r"(value) : "m"(*word) : "memory");
    return value;
}

static void increment(int *word)
{
    __asm__ volatile("lock incl %0" : "+m"(*word) : : "memory");
}

static void lock(arinc_lock *lock)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (load(&lock->word) == 0 && exchange(&lock->word, 1) == 0)
            return;
        __asm__ volatile("pause");
    }
    while (exchange(&lock->word, 2) != 0)
        futex(&lock->word, FUTEX_WAIT_PRIVATE, 2);
}

static void unlock(arinc_lock *lock)
{
    if (exchange(&lock->word, 0) == 2)
        futex(&lock->word, FUTEX_WAKE_PRIVATE, 1);
}

// Lets the lock go, waits for a change, and takes it again.
static void wait_for(arinc_event *event, arinc_lock *held)
{
    int seen = load(&event->changes);
    unlock(held);
    for (int spin = 0; spin < SPINS && load(&event->changes) == seen; spin++)
        __asm__ volatile("pause");
    while (load(&event->changes) == seen)
        futex(&event->changes, FUTEX_WAIT_PRIVATE, seen);
    lock(held);
}

static void happened(arinc_event *event)
{
    increment(&event->changes);
    futex(&event->changes, FUTEX_WAKE_PRIVATE, 1 << 30);
}

#if RACE == 1
uint32_t arinc_last_length;
#endif

void arinc_buffer_create(arinc_buffer *buffer, uint32_t depth)
{
    memset(buffer, 0, sizeof *buffer);
    buffer->depth = depth < MAX_DEPTH ? depth : MAX_DEPTH;
}

return_code arinc_buffer_send(arinc_buffer *buffer, const void *bytes, uint32_t length, uint32_t priority)
{
    if (length > MAX_MESSAGE)
        return INVALID_PARAMETER;
#if RACE == 3
    uint32_t received = buffer->received;
    lock(&buffer->lock);
#else
    lock(&buffer->lock);
    uint32_t received = buffer->received;
#endif
    buffer->backlog = buffer->sent - received;
    while (buffer->count == buffer->depth) {
        buffer->waiting++;
        wait_for(&buffer->changed, &buffer->lock);
        buffer->waiting--;
    }
    arinc_message *message = &buffer->messages[(buffer->head + buffer->count) % buffer->depth];
    message->length = length;
    message->priority = priority;
    memcpy(message->bytes, bytes, length);
    buffer->count++;
    buffer->sent++;
    buffer->bytes_sent += length;
    if (buffer->count > buffer->most)
        buffer->most = buffer->count;
#if RACE == 1
    arinc_last_length = length;
#endif
    unlock(&buffer->lock);
    happened(&buffer->changed);
    return NO_ERROR;
}

return_code arinc_buffer_receive(arinc_buffer *buffer, void *bytes, uint32_t *length, uint32_t *priority)
{
#if RACE == 2
    uint32_t sent = buffer->sent;
    lock(&buffer->lock);
#else
    lock(&buffer->lock);
    uint32_t sent = buffer->sent;
#endif
    buffer->backlog = sent - buffer->received;
    while (buffer->count == 0) {
        buffer->waiting++;
        wait_for(&buffer->changed, &buffer->lock);
        buffer->waiting--;
    }
    arinc_message *message = &buffer->messages[buffer->head];
    *length = message->length;
    *priority = message->priority;
    memcpy(bytes, message->bytes, message->length);
    buffer->head = (buffer->head + 1) % buffer->depth;
    buffer->count--;
    buffer->received++;
    buffer->bytes_received += *length;
    unlock(&buffer->lock);
#if RACE == 1
    if (arinc_last_length > MAX_MESSAGE)
        return INVALID_PARAMETER;
#endif
    happened(&buffer->changed);
    return NO_ERROR;
}

return_code arinc_buffer_status(arinc_buffer *buffer, arinc_buffer_counts *counts)
{
    lock(&buffer->lock);
    counts->count = buffer->count;
    counts->most = buffer->most;
    counts->sent = buffer->sent;
    counts->received = buffer->received;
    counts->waiting = buffer->waiting;
    counts->head = buffer->head;
    counts->bytes_sent = buffer->bytes_sent;
    counts->bytes_received = buffer->bytes_received;
    unlock(&buffer->lock);
    return NO_ERROR;
}

void arinc_blackboard_create(arinc_blackboard *board)
{
    memset(board, 0, sizeof *board);
}

return_code arinc_blackboard_display(arinc_blackboard *board, const void *bytes, uint32_t length, uint64_t stamp)
{
    if (length > MAX_MESSAGE)
        return INVALID_PARAMETER;
    lock(&board->lock);
    board->message.length = length;
    memcpy(board->message.bytes, bytes, length);
    board->stamp = stamp;
    board->shown = 1;
    board->displayed++;
    unlock(&board->lock);
    happened(&board->changed);
    return NO_ERROR;
}

return_code arinc_blackboard_read(arinc_blackboard *board, void *bytes, uint32_t *length, uint64_t *stamp)
{
    lock(&board->lock);
    while (!board->shown) {
        board->waiting++;
        wait_for(&board->changed, &board->lock);
        board->waiting--;
    }
    *length = board->message.length;
    memcpy(bytes, board->message.bytes, board->message.length);
    *stamp = board->stamp;
    board->read++;
    unlock(&board->lock);
    return NO_ERROR;
}

return_code arinc_blackboard_clear(arinc_blackboard *board)
{
    lock(&board->lock);
    board->shown = 0;
    board->cleared++;
    unlock(&board->lock);
    return NO_ERROR;
}

return_code arinc_blackboard_status(arinc_blackboard *board, arinc_blackboard_counts *counts)
{
    lock(&board->lock);
    counts->shown = board->shown;
    counts->displayed = board->displayed;
    counts->read = board->read;
    counts->cleared = board->cleared;
    counts->waiting = board->waiting;
    unlock(&board->lock);
    return NO_ERROR;
}

void arinc_health_report(arinc_health *health, uint32_t process, uint32_t code, uint64_t value)
{
    lock(&health->lock);
    arinc_health_entry *entry = &health->entries[health->reports % HEALTH_ENTRIES];
    entry->process = process;
    entry->code = code;
    entry->value = value;
    health->reports++;
    if (code > health->worst)
        health->worst = code;
    if (process != health->last_process)
        health->changes++;
    if (value > health->largest)
        health->largest = value;
    health->last_process = process;
    health->last_code = code;
    health->last_value = value;
    health->total += value;
    unlock(&health->lock);
}

uint64_t arinc_health_summary(arinc_health *health)
{
    lock(&health->lock);
    uint64_t sum = health->reports + health->worst + health->changes + health->largest + health->total;
    sum ^= health->last_value + health->last_process * 3 + health->last_code * 5;
    for (uint32_t number = 0; number < HEALTH_ENTRIES; number++)
        sum = sum * 31 + health->entries[number].process + health->entries[number].code + health->entries[number].value;
    unlock(&health->lock);
    return sum;
}

void arinc_process_start(arinc_process *process, void *(*body)(void *), void *argument)
{
    pthread_create(&process->thread, NULL, body, argument);
}

void arinc_process_end(arinc_process *process)
{
    pthread_join(process->thread, NULL);
}
