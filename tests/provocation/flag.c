// Listing 2 of the RaceHunter paper (Programming and Computer Software 50(6), 2024).
// When t1 runs before t2 the store and the load of b order both writes of a; but t2 passes its test before t1 has stored as well.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static int a;
static atomic_int b = 0;
static atomic_int c = 2;

static void *t1(void *unused)
{
    a = 1;
    atomic_store(&b, 1);
    return unused;
}

static void *t2(void *unused)
{
    if (atomic_load(&b) != atomic_load(&c))
        a = 2;
    return unused;
}

int main(void)
{
    pthread_t one, other;
    pthread_create(&one, NULL, t1, NULL);
    pthread_create(&other, NULL, t2, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    printf("%d\n", a);
    return 0;
}
