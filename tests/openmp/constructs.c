// Every construct of OpenMP that orders threads, used correctly.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int kept;
#pragma omp threadprivate(kept)

static long fibonacci(int n) {
    long a, b;
    if (n < 2) return n;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void) {
    enum { N = 40 };
    long values[N], total = 0, sum = 0, most = 0;
    int shared = 0, once = 0, held = 0, order[N], at = 0;
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(3) copyin(kept)
    {
        kept = omp_get_thread_num() + 1;
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++) values[i] = i;
#pragma omp for schedule(dynamic, 3) reduction(+ : sum)
        for (int i = 0; i < N; i++) sum += values[i];
#pragma omp for schedule(guided) reduction(max : most) nowait
        for (int i = 0; i < N; i++) most = values[i] > most ? values[i] : most;
#pragma omp critical
        shared++;
#pragma omp critical(named)
        total++;
#pragma omp atomic
        once++;
        omp_set_lock(&lock);
        held++;
        omp_unset_lock(&lock);
#pragma omp barrier
#pragma omp single
        shared += 10;
#pragma omp master
        shared += 100;
#pragma omp barrier
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < N; i++) {
            values[i] *= 2;
#pragma omp ordered
            order[at++] = i;
        }
#pragma omp sections
        {
#pragma omp section
            values[0] = 7;
#pragma omp section
            values[1] = 8;
        }
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        total++;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
        int handed;
#pragma omp single copyprivate(handed)
        handed = 5;
        if (handed != 5) abort();
    }
    if (held != 3) abort();
    int same = 1;
#pragma omp parallel num_threads(3) reduction(&& : same)
    same = kept == omp_get_thread_num() + 1;
    for (int i = 0; i < N; i++) if (order[i] != i) abort();
    long result = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
    result = fibonacci(7);
    int chain = 0, left = 0, right = 0, last = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp task depend(out : chain)
        chain = 1;
#pragma omp task depend(in : chain) depend(out : left)
        left = chain + 1;
#pragma omp task depend(in : chain) depend(out : right)
        right = chain + 2;
#pragma omp task depend(in : left, right)
        last = left + right;
#pragma omp taskwait
        last++;
#pragma omp taskgroup
        {
#pragma omp task
            {
#pragma omp task
                left = 50;
            }
#pragma omp task
            right = 60;
        }
        last += left + right;
    }
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop num_tasks(5)
    for (int i = 0; i < N; i++) values[i] = i;
    int sums[N], field[N][N];
    for (int i = 0; i < N; i++) sums[i] = field[0][i] = field[i][0] = i;
#pragma omp parallel for ordered(1) schedule(dynamic) num_threads(3)
    for (int i = 1; i < N; i++) {
#pragma omp ordered depend(sink : i - 1)
        sums[i] += sums[i - 1];
#pragma omp ordered depend(source)
    }
    if (sums[N - 1] != N * (N - 1) / 2) abort();
#pragma omp parallel num_threads(3)
#pragma omp for ordered(2)
    for (int i = 1; i < 12; i++)
        for (long j = 11; j > 0; j -= 2) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j + 2)
            field[i][j] = field[i - 1][j] + (j < 11 ? field[i][j + 2] : 0);
#pragma omp ordered depend(source)
        }
    for (int i = 1; i < 12; i++)
        for (int j = 11; j > 0; j -= 2)
            if (field[i][j] != field[i - 1][j] + (j < 11 ? field[i][j + 2] : 0)) abort();
    omp_set_max_active_levels(2);
    int inner[2] = {0, 0};
#pragma omp parallel num_threads(2)
    {
        int *mine = &inner[omp_get_thread_num()];
#pragma omp parallel num_threads(2)
#pragma omp atomic
        *mine += omp_get_level();
    }
    printf("%ld %ld %d %ld %d %d %ld %d %d %d %ld\n", sum, most, shared, total, once, same, result, last, inner[0],
           inner[1], values[39]);
    return 0;
}
