// dlopen and dlclose in threads.
// Shows: modules that come and go while the program runs, and calls through addresses found at run time.
// True:  the C library's mathematics are not linked in; each thread has its own handle.
// expect: none
#include <dlfcn.h>
#include <pthread.h>

static void *work(void *argument) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    if (library == NULL)
        return NULL;
    double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
    if (cosine != NULL)
        *(double *)argument = cosine(0.0);
    dlclose(library);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    double results[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &results[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return results[0] == 1.0 && results[1] == 1.0 ? 0 : 1;
}
