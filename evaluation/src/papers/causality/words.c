// Counts words of a text with a pool of GLib's threads: pieces go through the pool, results through an asynchronous queue.
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static GMutex lock;
static GHashTable *total;
static GAsyncQueue *results;
static unsigned finished; // counted by all threads without a lock

static void count_piece(gpointer data, gpointer unused) {
    char *piece = data;
    GHashTable *own = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    char **words = g_strsplit_set(piece, " \n", -1);
    for (char **word = words; *word; word++)
        if (**word) {
            gpointer seen = g_hash_table_lookup(own, *word);
            g_hash_table_replace(own, g_strdup(*word), GUINT_TO_POINTER(GPOINTER_TO_UINT(seen) + 1));
        }
    g_strfreev(words);
    g_free(piece);
    finished++;
    g_async_queue_push(results, own);
    (void)unused;
}

int main(int argc, char **argv) {
    int pieces = argc > 1 ? atoi(argv[1]) : 64, words = argc > 2 ? atoi(argv[2]) : 200;
    total = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    results = g_async_queue_new();
    GThreadPool *pool = g_thread_pool_new(count_piece, NULL, 4, TRUE, NULL);
    unsigned state = 7;
    for (int i = 0; i < pieces; i++) {
        GString *text = g_string_new(NULL);
        for (int j = 0; j < words; j++) {
            state = state * 1103515245u + 12345u;
            g_string_append_printf(text, "w%u ", (state >> 16) % 300);
        }
        g_thread_pool_push(pool, g_string_free(text, FALSE), NULL);
    }
    unsigned sum = 0;
    for (int i = 0; i < pieces; i++) {
        GHashTable *own = g_async_queue_pop(results);
        GHashTableIter iter;
        gpointer word, count;
        g_mutex_lock(&lock);
        g_hash_table_iter_init(&iter, own);
        while (g_hash_table_iter_next(&iter, &word, &count)) {
            gpointer before = g_hash_table_lookup(total, word);
            g_hash_table_replace(total, g_strdup(word), GUINT_TO_POINTER(GPOINTER_TO_UINT(before) + GPOINTER_TO_UINT(count)));
            sum += GPOINTER_TO_UINT(count);
        }
        g_mutex_unlock(&lock);
        g_hash_table_destroy(own);
    }
    g_thread_pool_free(pool, FALSE, TRUE);
    g_async_queue_unref(results);
    printf("%u words, %u different, %u pieces\n", sum, g_hash_table_size(total), finished);
    return sum != (unsigned)pieces * words;
}
