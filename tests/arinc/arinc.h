// A small library after ARINC 653: processes of a partition, which are threads, exchange messages by buffers and blackboards. It
// synchronises by a lock of its own, made of an exchange and the kernel's futex in inline assembly, so that no tool sees it.
//
// RACE=1: the size of the last message is kept in a plain global variable: written on sending, read on receiving.
// RACE=2: receiving looks how much was sent before it takes the lock.
// RACE=3: sending looks how much was received before it takes the lock.
#ifndef ARINC_H
#define ARINC_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef RACE
#define RACE 0
#endif

enum { MAX_MESSAGE = 64, MAX_DEPTH = 4 };

typedef enum { NO_ERROR, NOT_AVAILABLE, INVALID_PARAMETER } return_code;

typedef struct {
    int word; // 0 free, 1 taken, 2 taken and somebody sleeps
} arinc_lock;

// Counts changes; who waits for one sleeps on it.
typedef struct {
    int changes;
} arinc_event;

typedef struct {
    uint32_t length;
    uint32_t priority;
    uint8_t bytes[MAX_MESSAGE];
} arinc_message;

// Messages in the order in which they were sent.
typedef struct {
    arinc_lock lock;
    arinc_event changed;
    uint32_t depth, head, count;
    uint32_t sent, received, most, waiting, backlog;
    uint64_t bytes_sent, bytes_received;
    arinc_message messages[MAX_DEPTH];
} arinc_buffer;

// One message that stays until it is replaced or cleared.
typedef struct {
    arinc_lock lock;
    arinc_event changed;
    uint32_t shown, displayed, read, cleared, waiting;
    uint64_t stamp;
    arinc_message message;
} arinc_blackboard;

// What went wrong, or just happened, in the order of reports; the oldest are overwritten.
enum { HEALTH_ENTRIES = 8 };
typedef struct {
    uint32_t process, code;
    uint64_t value;
} arinc_health_entry;
typedef struct {
    arinc_lock lock;
    uint32_t reports, worst, last_process, last_code, changes;
    uint64_t last_value, total, largest;
    arinc_health_entry entries[HEALTH_ENTRIES];
} arinc_health;

typedef struct {
    uint32_t count, most, sent, received, waiting, head;
    uint64_t bytes_sent, bytes_received;
} arinc_buffer_counts;

typedef struct {
    uint32_t shown, displayed, read, cleared, waiting;
} arinc_blackboard_counts;

void arinc_buffer_create(arinc_buffer *buffer, uint32_t depth);
return_code arinc_buffer_send(arinc_buffer *buffer, const void *bytes, uint32_t length, uint32_t priority);
// Waits for a message, for ever.
return_code arinc_buffer_receive(arinc_buffer *buffer, void *bytes, uint32_t *length, uint32_t *priority);
return_code arinc_buffer_status(arinc_buffer *buffer, arinc_buffer_counts *counts);

void arinc_blackboard_create(arinc_blackboard *board);
return_code arinc_blackboard_display(arinc_blackboard *board, const void *bytes, uint32_t length, uint64_t stamp);
return_code arinc_blackboard_read(arinc_blackboard *board, void *bytes, uint32_t *length, uint64_t *stamp);
return_code arinc_blackboard_clear(arinc_blackboard *board);
return_code arinc_blackboard_status(arinc_blackboard *board, arinc_blackboard_counts *counts);

void arinc_health_report(arinc_health *health, uint32_t process, uint32_t code, uint64_t value);
uint64_t arinc_health_summary(arinc_health *health);

typedef struct {
    pthread_t thread;
} arinc_process;

void arinc_process_start(arinc_process *process, void *(*body)(void *), void *argument);
void arinc_process_end(arinc_process *process);

#endif
