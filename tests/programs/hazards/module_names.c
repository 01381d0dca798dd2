// dl_iterate_phdr in one thread while another loads a library and gives it back.
// Shows: memory that the loader takes from malloc and shows to a callback, behind a mutex that nobody sees.
// True:  a callback runs with the loader's mutex held, by which modules come and go.
// expect: none
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

// Relaxed: it says when, and orders nothing.
static atomic_int step;

static void reach(int number) { atomic_store_explicit(&step, number, memory_order_relaxed); }

static void await(int number) {
    while (atomic_load_explicit(&step, memory_order_relaxed) < number)
        sched_yield();
}

static int look(struct dl_phdr_info *info, size_t size, void *sum) {
    (void)size;
    for (const char *at = info->dlpi_name; *at; at++)
        *(int *)sum += *at;
    *(int *)sum += info->dlpi_phnum;
    return 0;
}

static void *load(void *argument) {
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    reach(1);
    await(2);
    if (library != NULL)
        dlclose(library);
    return argument;
}

static void *list(void *sum) {
    await(1);
    dl_iterate_phdr(look, sum);
    reach(2);
    return NULL;
}

int main(void) {
    pthread_t loading, listing;
    int sum = 0;
    pthread_create(&loading, NULL, load, NULL);
    pthread_create(&listing, NULL, list, &sum);
    pthread_join(loading, NULL);
    pthread_join(listing, NULL);
    return sum > 0 ? 0 : 1;
}
