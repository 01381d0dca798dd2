// Tasks of every kind, used correctly.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

// Whoever waits at a scheduling point of an untied task may leave it to others.
static int fibonacci(int n) {
    int a, b;
    if (n < 2) return n;
#pragma omp task untied shared(a)
    a = fibonacci(n - 1);
#pragma omp task untied shared(b) if (n % 2)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

static int parts(void) {
    int done = 0, last = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task untied shared(done, last)
        {
            int part = 1;
#pragma omp taskyield
            part++;
#pragma omp task shared(done)
#pragma omp atomic
            done++;
#pragma omp taskwait
            part++;
            last = part;
        }
    }
    return 10 * done + last;
}

// How the tasks of a loop are cut, in digits: how many iterations lie between a task's first and last.
static void cut(long *digits) {
    int first[23], count = 0;
    *digits = 0;
#ifdef STRICT
#pragma omp taskloop grainsize(strict : 5) firstprivate(count) shared(first)
#else
#pragma omp taskloop grainsize(5) firstprivate(count) shared(first)
#endif
    for (int i = 0; i < 23; i++) first[i] = count++;
    for (int i = 0; i < 23; i++)
        if (i == 22 || first[i + 1] == 0) *digits = 10 * *digits + first[i] + 1;
}

int main(void) {
    int result = 0;
    long digits = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        result = fibonacci(6);
        cut(&digits);
    }
    printf("%d %d %ld\n", result, parts(), digits);
    return 0;
}
