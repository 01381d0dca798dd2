// A histogram that two threads fill without a reduction.
#include <stdio.h>

int main(void) {
    int histogram[4] = {0};
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 8; i++)
        histogram[i % 4]++;
    printf("%d\n", histogram[0]);
    return 0;
}
