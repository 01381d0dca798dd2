// Locked objects: string buffers that grow, each with a lock of its own; threads append one buffer's contents to another, taking
// the lock of the lower one first.
// Usage: strings [APPENDS [THREADS]]
// Check: every character that was appended is there, by letter.
// Race-free: a buffer is read and written with its lock held.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 8, PIECE = 48, LONGEST = 1 << 14, MOST_THREADS = 64 };

struct buffer {
    pthread_mutex_t lock;
    char *text;
    size_t length, capacity;
    size_t dropped[26]; // letters that were cut off when the buffer was full
};

struct worker {
    pthread_t handle;
    size_t number, copied[26];
};

static size_t appends = 60000, threads = 4;
static struct buffer buffers[BUFFERS];

static void append(struct buffer *to, const char *text, size_t length) {
    if (to->length + length > LONGEST) {
        for (size_t i = 0; i < to->length; i++)
            to->dropped[to->text[i] - 'a']++;
        to->length = 0;
    }
    if (to->length + length > to->capacity) {
        to->capacity = 2 * (to->length + length);
        to->text = realloc(to->text, to->capacity);
        if (to->text == NULL)
            abort();
    }
    for (size_t i = 0; i < length; i++)
        to->text[to->length++] = text[i];
}

// Appends the end of one to the other.
static void append_buffer(struct worker *self, struct buffer *to, struct buffer *from) {
    struct buffer *low = to < from ? to : from, *high = to < from ? from : to;
    pthread_mutex_lock(&low->lock);
    pthread_mutex_lock(&high->lock);
    size_t length = from->length < PIECE ? from->length : PIECE;
    char piece[PIECE];
    memcpy(piece, from->text + from->length - length, length);
    for (size_t i = 0; i < length; i++)
        self->copied[piece[i] - 'a']++;
    append(to, piece, length);
    pthread_mutex_unlock(&high->lock);
    pthread_mutex_unlock(&low->lock);
}

static void *run(void *argument) {
    struct worker *self = argument;
    for (size_t i = 0; i < appends; i++) {
        size_t to = (i + self->number) % BUFFERS, from = (to + 1 + i / BUFFERS % (BUFFERS - 1)) % BUFFERS;
        append_buffer(self, &buffers[to], &buffers[from]);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        appends = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (threads == 0 || threads > MOST_THREADS)
        return 2;
    size_t expected[26] = {0}, found[26] = {0};
    for (size_t i = 0; i < BUFFERS; i++) {
        pthread_mutex_init(&buffers[i].lock, NULL);
        for (size_t j = 0; j < PIECE; j++) {
            char letter = (char)('a' + (i * 5 + j) % 26);
            append(&buffers[i], &letter, 1);
            expected[letter - 'a']++;
        }
    }
    struct worker workers[MOST_THREADS] = {0};
    for (size_t i = 0; i < threads; i++) {
        workers[i].number = i;
        if (pthread_create(&workers[i].handle, NULL, run, &workers[i]) != 0)
            return 2;
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(workers[i].handle, NULL);
        for (size_t letter = 0; letter < 26; letter++)
            expected[letter] += workers[i].copied[letter];
    }
    size_t total = 0;
    for (size_t i = 0; i < BUFFERS; i++) {
        for (size_t j = 0; j < buffers[i].length; j++)
            found[buffers[i].text[j] - 'a']++;
        for (size_t letter = 0; letter < 26; letter++)
            found[letter] += buffers[i].dropped[letter];
        total += buffers[i].length;
        free(buffers[i].text);
        pthread_mutex_destroy(&buffers[i].lock);
    }
    int right = memcmp(expected, found, sizeof expected) == 0;
    printf("strings: %zu appends with %zu threads, %zu characters left: %s\n", appends * threads, threads, total,
           right ? "right" : "WRONG");
    return !right;
}
