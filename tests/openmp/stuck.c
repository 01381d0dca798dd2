// Two threads wait for each other's locks for ever, all others for them at the region's end. Both have their first lock before.
#include <omp.h>
#include <stdio.h>

int main(void) {
    omp_lock_t one, other;
    int have = 0;
    omp_init_lock(&one);
    omp_init_lock(&other);
#pragma omp parallel num_threads(4)
    if (omp_get_thread_num() < 2) {
        omp_lock_t *first = omp_get_thread_num() ? &one : &other, *second = omp_get_thread_num() ? &other : &one;
        int now;
        omp_set_lock(first);
#pragma omp atomic
        have++;
        do {
#pragma omp atomic read
            now = have;
        } while (now < 2);
        omp_set_lock(second);
        omp_unset_lock(second);
        omp_unset_lock(first);
    }
    puts("not reached");
    return 0;
}
