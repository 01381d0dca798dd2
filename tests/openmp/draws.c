// Who gets which piece of work is not said anywhere. It fails if FIRST and SECOND are who got the two pieces.
#include <omp.h>
#include <stdlib.h>

int main(void) {
    int by[2] = {0, 0};
#ifdef TASKS
#pragma omp parallel num_threads(2)
#pragma omp master
    for (int i = 0; i < 2; i++)
#pragma omp task
        by[i] = omp_get_thread_num();
#else
#pragma omp parallel for num_threads(2) schedule(dynamic, 1)
    for (int i = 0; i < 2; i++) by[i] = omp_get_thread_num();
#endif
    if (by[0] == FIRST && by[1] == SECOND) abort();
    return 0;
}
