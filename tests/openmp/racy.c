// A race (in case 14, a deadlock) for each construct of OpenMP: what it does not order. Behind each: the variable that races.
#include <omp.h>
#include <stdio.h>
int x, y, a[8];
int main(void) {
    int s = 0; omp_lock_t l, k; omp_init_lock(&l); omp_init_lock(&k); (void)s;
#if CASE == 1 // critical sections of different names
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
#pragma omp critical(one)
        x++;
        }
#pragma omp section
        {
#pragma omp critical(two)
        x++;
        }
    }
#elif CASE == 2 // nowait then read neighbours
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(static) nowait
    for (int i = 0; i < 8; i++) a[i] = i;
#pragma omp for schedule(static)
    for (int i = 0; i < 8; i++) x = a[7 - i];
    }
#elif CASE == 3 // missing reduction
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 8; i++) s += i;
#elif CASE == 4 // loop-carried dependence
#pragma omp parallel for num_threads(2) schedule(dynamic, 1)
    for (int i = 1; i < 8; i++) a[i] = a[i - 1] + 1;
#elif CASE == 5 // task without taskwait
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        x = 1;
        y = x;
    }
#elif CASE == 6 // independent tasks on one variable
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        x++;
#pragma omp task
        x++;
    }
#elif CASE == 7 // missing depend edge
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : y)
        x = 1;
#pragma omp task depend(in : x)
        y = x;
    }
#elif CASE == 8 // master without barrier
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        x = 1;
        if (x) a[omp_get_thread_num()] = 1;
    }
#elif CASE == 9 // single nowait
#pragma omp parallel num_threads(2)
    {
#pragma omp single nowait
        x = 1;
        a[omp_get_thread_num()] = x;
    }
#elif CASE == 10 // different omp locks
#pragma omp parallel num_threads(2)
    {
        omp_lock_t *m = omp_get_thread_num() ? &l : &k;
        omp_set_lock(m);
        x++;
        omp_unset_lock(m);
    }
#elif CASE == 11 // taskwait waits for children only
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        {
#pragma omp task
            x = 1;
        }
#pragma omp taskwait
        y = x;
    }
#elif CASE == 12 // inner regions of a nested one share
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(2)
        {
#pragma omp critical
            y++;
        }
        x++;
    }
#elif CASE == 13 // outside ordered
#pragma omp parallel for ordered num_threads(2) schedule(dynamic, 1)
    for (int i = 0; i < 4; i++) {
        x++;
#pragma omp ordered
        y++;
    }
#elif CASE == 14 // AB/BA deadlock of locks
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
            omp_set_lock(&l); x++; omp_set_lock(&k); omp_unset_lock(&k); omp_unset_lock(&l);
        }
#pragma omp section
        {
            omp_set_lock(&k); y++; omp_set_lock(&l); omp_unset_lock(&l); omp_unset_lock(&k);
        }
    }
#elif CASE == 15 // taskloop, shared scalar
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop num_tasks(4)
    for (int i = 0; i < 8; i++) x = i;
#elif CASE == 16 // doacross: an iteration waits for the wrong one: a
#pragma omp parallel for ordered(1) schedule(static, 1) num_threads(2)
    for (int i = 2; i < 8; i++) {
#pragma omp ordered depend(sink : i - 2)
        a[i] = a[i - 1] + 1;
#pragma omp ordered depend(source)
    }
#endif
    printf("%d %d %d\n", x, y, s);
    return 0;
}
