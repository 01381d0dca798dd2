// Listing 1 of the RaceHunter paper (Programming and Computer Software 50(6), 2024).
// When t1 runs before t2 both accesses of a are under ma, and lock sets see nothing; if t2 reads b first it writes a unlocked.
#include <pthread.h>
#include <stdio.h>

static int a, b;
static pthread_mutex_t ma = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mb = PTHREAD_MUTEX_INITIALIZER;

static void *t1(void *unused)
{
    pthread_mutex_lock(&ma);
    a = 1;
    pthread_mutex_unlock(&ma);
    pthread_mutex_lock(&mb);
    b = 1;
    pthread_mutex_unlock(&mb);
    return unused;
}

static void *t2(void *unused)
{
    pthread_mutex_lock(&mb);
    if (b == 1) {
        pthread_mutex_unlock(&mb);
        pthread_mutex_lock(&ma);
        a = 2;
        pthread_mutex_unlock(&ma);
    } else {
        pthread_mutex_unlock(&mb);
        a = 3;
    }
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
