// Owned by root and setuid: ends with 0 where that has an effect.

#include <stdio.h>
#include <unistd.h>

int main(void) {
    if (geteuid() == 0) {
        printf("got through\n");
        return 0;
    }
    printf("not root\n");
    return 1;
}
